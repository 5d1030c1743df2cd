/*
 * Protection domains: what the peers of one can reach is nothing of another's. A base has one on
 * each device, and one more for each evrdma_domain that is used there. It stays as long as the
 * device does, or its evrdma_domain.
 *
 * An evrdma_domain is one base's. Of one that bases share the program has a handle, which any
 * thread may read, and each base that comes to use it a part, an evrdma_domain of its own, which is
 * what its objects name. The base holds its part too, until the handle is given up.
 */
#ifndef EVR_EV_PD_H
#define EVR_EV_PD_H

#include <infiniband/verbs.h>
#include <stdbool.h>

#include "ev/device/region.h"
#include "ev/device/shared.h"
#include "util/list.h"

#include <evrdma/domain.h>

struct evr_device;
struct evr_devices;
struct evr_pd_user;

/* What somebody has made on a PD and keeps there, for the next who asks for it. */
struct evr_pd_user {
	TAILQ_ENTRY(evr_pd_user) link;
	/* Nobody uses it, and the PD goes: it goes as well. */
	void (*forget)(struct evr_pd_user *user);
};

TAILQ_HEAD(evr_pd_user_list, evr_pd_user);

struct evr_pd {
	TAILQ_ENTRY(evr_pd) link;
	struct evr_device *device;
	struct evrdma_domain *domain; /* NULL: the one of all who have none */
	struct ibv_pd *pd;
	struct evr_shared_pd *shared; /* NULL: the base's alone, otherwise pd is of that */
	struct evr_mr_list mrs;	      /* of the base */
	struct evr_pd_user_list users;
	unsigned made;		      /* so many by the base, also in what is shared */
};

TAILQ_HEAD(evr_pd_list, evr_pd);

struct evrdma_domain {
	TAILQ_ENTRY(evrdma_domain) link;
	struct evrdma_base *base;  /* NULL: the handle */
	struct evr_shared *shared; /* NULL: the base's alone */
	struct evr_shared_part part;
	unsigned users; /* the owner or, of a part, the base; and every object that names it */
};

TAILQ_HEAD(evr_domain_list, evrdma_domain);

/* Finds or makes it; slow when it is made. 0 or -errno. */
int evr_pd_get(struct evr_device *device, struct evrdma_domain *domain, struct evr_pd **pd);
void evr_pd_forget_users(struct evr_device *device);
/*
 * One thing that is kept on a device that nobody uses, a user or a registration; false when there
 * is none.
 */
bool evr_pd_drop_one(struct evr_device *device);
void evr_pd_release_all(struct evr_device *device);

/* Whether objects of a base may name it, and so take it: NULL may they, and get NULL. */
bool evr_domain_fits(const struct evrdma_domain *domain, const struct evrdma_base *base);
/*
 * What an object of the base is to name, with a reference: the domain, or the base's part of a
 * shared one. 0 or -errno.
 */
int evr_domain_take(struct evrdma_base *base, struct evrdma_domain *domain,
	struct evrdma_domain **taken);
/* NULL is fine for both. */
struct evrdma_domain *evr_domain_ref(struct evrdma_domain *domain);
void evr_domain_unref(struct evrdma_domain *domain);
void evr_domain_release_all(struct evr_devices *devices);

#endif
