/*
 * What is behind a bufferevent: found by its address, in any thread. libevent does not tell when a
 * bufferevent goes, so its callbacks know nothing but that address, at which it lives whenever they
 * run. A new one at the address of one that is gone takes its place.
 */
#ifndef EVR_EV_REGISTRY_H
#define EVR_EV_REGISTRY_H

struct bufferevent;
struct evr_bev;

/* 0 or -ENOMEM. */
int evr_registry_add(const struct bufferevent *bev, struct evr_bev *behind);
/* NULL: nothing is. */
struct evr_bev *evr_registry_find(const struct bufferevent *bev);
/* Calls visit with it, if something is, before that can go. It must not call back. */
void evr_registry_visit(const struct bufferevent *bev, void (*visit)(struct evr_bev *behind));
/* Unless something else is behind it by now. */
void evr_registry_remove(const struct bufferevent *bev, const struct evr_bev *behind);

#endif
