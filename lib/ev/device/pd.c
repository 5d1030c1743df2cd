#include "ev/device/pd.h"

#include <errno.h>
#include <stdlib.h>

#include "ev/core/base.h"
#include "ev/core/error.h"
#include "ev/core/log.h"
#include "ev/device/devices.h"

/* --- on a device ---------------------------------------------------------------------------- */

static int alloc_shared(struct evr_pd *pd, struct evr_shared *shared)
{
	int ret = evr_shared_pd_get(shared, pd->device->verbs, &pd->shared);

	if (!ret)
		pd->pd = pd->shared->pd;
	return ret;
}

static int alloc_own(struct evr_pd *pd)
{
	errno = 0;
	pd->pd = ibv_alloc_pd(pd->device->verbs);
	return pd->pd ? 0 : evr_verbs_error();
}

static int make(struct evr_device *device, struct evrdma_domain *domain, struct evr_pd **made)
{
	struct evr_pd *pd = calloc(1, sizeof(*pd));
	int ret;

	if (!pd)
		return -ENOMEM;
	pd->device = device;
	pd->domain = domain;
	ret = domain && domain->shared ? alloc_shared(pd, domain->shared) : alloc_own(pd);
	if (ret) {
		free(pd);
		return ret;
	}
	TAILQ_INIT(&pd->mrs);
	TAILQ_INIT(&pd->users);
	TAILQ_INSERT_TAIL(&device->pds, pd, link);
	*made = pd;
	return 0;
}

int evr_pd_get(struct evr_device *device, struct evrdma_domain *domain, struct evr_pd **found)
{
	struct evr_pd *pd;

	TAILQ_FOREACH (pd, &device->pds, link)
		if (pd->domain == domain) {
			*found = pd;
			return 0;
		}
	return make(device, domain, found);
}

static void forget_users(struct evr_pd *pd)
{
	struct evr_pd_user *user, *next;

	TAILQ_FOREACH_SAFE (user, &pd->users, link, next)
		user->forget(user);
}

static void release(struct evr_pd *pd)
{
	forget_users(pd);
	evr_region_forget_pd(pd);
	if (pd->shared)
		evr_shared_pd_put(pd->shared);
	else
		evr_log_failure("ibv_dealloc_pd", ibv_dealloc_pd(pd->pd));
	TAILQ_REMOVE(&pd->device->pds, pd, link);
	free(pd);
}

void evr_pd_forget_users(struct evr_device *device)
{
	struct evr_pd *pd;

	TAILQ_FOREACH (pd, &device->pds, link)
		forget_users(pd);
}

static bool forget_one_user(struct evr_pd *pd)
{
	struct evr_pd_user *user = TAILQ_FIRST(&pd->users);

	if (user)
		user->forget(user);
	return user;
}

/* The users have posted what is registered. */
bool evr_pd_drop_one(struct evr_device *device)
{
	struct evr_pd *pd;

	TAILQ_FOREACH (pd, &device->pds, link)
		if (forget_one_user(pd) || evr_region_drop_one(pd))
			return true;
	return false;
}

void evr_pd_release_all(struct evr_device *device)
{
	struct evr_pd *pd;

	while ((pd = TAILQ_FIRST(&device->pds)))
		release(pd);
}

/* --- a tenant's, on every device of its base ------------------------------------------------ */

struct evrdma_domain *evrdma_domain_new(struct evrdma_base *base)
{
	struct evrdma_domain *domain = calloc(1, sizeof(*domain));

	if (!domain)
		return NULL;
	domain->base = base;
	domain->users = 1;
	TAILQ_INSERT_TAIL(&evr_devices_of(base)->domains, domain, link);
	return domain;
}

static void leave_devices(struct evrdma_domain *domain)
{
	struct evr_device *device;
	struct evr_pd *pd, *next;

	TAILQ_FOREACH (device, &evr_devices_of(domain->base)->list, link)
		TAILQ_FOREACH_SAFE (pd, &device->pds, link, next)
			if (pd->domain == domain)
				release(pd);
}

static void leave_base(struct evrdma_domain *domain)
{
	leave_devices(domain);
	TAILQ_REMOVE(&evr_devices_of(domain->base)->domains, domain, link);
	if (domain->shared) {
		evr_shared_leave(domain->shared, &domain->part);
		evr_shared_unref(domain->shared);
	}
	free(domain);
}

struct evrdma_domain *evr_domain_ref(struct evrdma_domain *domain)
{
	if (domain)
		domain->users++;
	return domain;
}

void evr_domain_unref(struct evrdma_domain *domain)
{
	evr_lock_expect_none();
	if (!domain || --domain->users)
		return;
	leave_base(domain);
}

void evr_domain_release_all(struct evr_devices *devices)
{
	struct evrdma_domain *domain;

	while ((domain = TAILQ_FIRST(&devices->domains)))
		leave_base(domain);
}

/* --- shared by the bases of a process ------------------------------------------------------- */

struct evrdma_domain *evrdma_domain_new_shared(void)
{
	struct evrdma_domain *handle = calloc(1, sizeof(*handle));

	if (!handle)
		return NULL;
	handle->shared = evr_shared_new();
	if (handle->shared)
		return handle;
	free(handle);
	return NULL;
}

/* On the base's thread: the handle is given up, and the objects that name the part keep it. */
static void on_given_up(struct evrdma_base *base, struct evr_inbox_item *item)
{
	evr_domain_unref(evr_container_of(item, struct evrdma_domain, part.item));
}

static struct evrdma_domain *new_part(struct evrdma_base *base, struct evr_shared *shared)
{
	struct evrdma_domain *domain = evrdma_domain_new(base);

	if (!domain)
		return NULL;
	domain->shared = evr_shared_ref(shared);
	domain->part.base = base;
	domain->part.item.deliver = on_given_up;
	evr_shared_join(shared, &domain->part);
	return domain;
}

static struct evrdma_domain *find_part(struct evrdma_base *base, const struct evr_shared *shared)
{
	struct evrdma_domain *domain;

	TAILQ_FOREACH (domain, &evr_devices_of(base)->domains, link)
		if (domain->shared == shared)
			break;
	return domain;
}

static bool is_handle(const struct evrdma_domain *domain)
{
	return domain && !domain->base;
}

bool evr_domain_fits(const struct evrdma_domain *domain, const struct evrdma_base *base)
{
	return !domain || is_handle(domain) || domain->base == base;
}

int evr_domain_take(struct evrdma_base *base, struct evrdma_domain *domain,
	struct evrdma_domain **taken)
{
	struct evrdma_domain *part = domain;

	if (!evr_domain_fits(domain, base))
		return -EINVAL;
	if (is_handle(domain)) {
		part = find_part(base, domain->shared);
		if (!part)
			part = new_part(base, domain->shared);
		if (!part)
			return -ENOMEM;
	}
	*taken = evr_domain_ref(part);
	return 0;
}

static void free_handle(struct evrdma_domain *handle)
{
	evr_shared_give_up(handle->shared);
	evr_shared_unref(handle->shared);
	free(handle);
}

void evrdma_domain_free(struct evrdma_domain *domain)
{
	if (is_handle(domain))
		free_handle(domain);
	else
		evr_domain_unref(domain);
}
