#include "ev/device/pd.h"

#include <errno.h>
#include <stdlib.h>

#include "ev/core/base.h"
#include "ev/core/error.h"
#include "ev/core/log.h"
#include "ev/device/devices.h"

/* --- on a device ---------------------------------------------------------------------------- */

static int alloc(struct evr_device *device, struct evrdma_domain *domain, struct evr_pd **made)
{
	struct evr_pd *pd = calloc(1, sizeof(*pd));
	int ret;

	if (!pd)
		return -ENOMEM;
	errno = 0;
	pd->pd = ibv_alloc_pd(device->verbs);
	if (!pd->pd) {
		ret = evr_verbs_error();
		free(pd);
		return ret;
	}
	pd->device = device;
	pd->domain = domain;
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
	return alloc(device, domain, found);
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

bool evr_pd_drop_one_mr(struct evr_device *device)
{
	struct evr_pd *pd;

	TAILQ_FOREACH (pd, &device->pds, link)
		if (evr_region_drop_one(pd))
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
	if (!domain->base)
		return;
	leave_devices(domain);
	TAILQ_REMOVE(&evr_devices_of(domain->base)->domains, domain, link);
	domain->base = NULL;
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
	free(domain);
}

void evr_domain_release_all(struct evr_devices *devices)
{
	struct evrdma_domain *domain;

	while ((domain = TAILQ_FIRST(&devices->domains))) {
		leave_base(domain);
		free(domain);
	}
}

void evrdma_domain_free(struct evrdma_domain *domain)
{
	evr_domain_unref(domain);
}
