#include "ev/core/stats.h"

#include <stdio.h>
#include <string.h>

#include "ev/core/base.h"
#include "util/options.h"

/* --- as structures -------------------------------------------------------------------------- */

void evrdma_base_get_stats_sized(
	const struct evrdma_base *base, struct evrdma_base_stats *stats, size_t size)
{
	evr_options_store(stats, size, &base->stats, sizeof(base->stats));
}

void evrdma_base_get_traffic_stats_sized(
	const struct evrdma_base *base, struct evrdma_traffic_stats *stats, size_t size)
{
	evr_options_store(stats, size, &base->traffic, sizeof(base->traffic));
}

/* --- as text -------------------------------------------------------------------------------- */

struct value {
	const char *name;
	size_t offset;
};

static const struct value traffic_values[] = {
#define VALUE(name) { #name, offsetof(struct evrdma_traffic_stats, name) }
	VALUE(sends),
	VALUE(writes),
	VALUE(reads),
	VALUE(atomics),
	VALUE(bytes_sent),
	VALUE(bytes_written),
	VALUE(bytes_read),
	VALUE(work_done),
	VALUE(work_failed),
	VALUE(work_cancelled),
	VALUE(messages_received),
	VALUE(bytes_received),
	VALUE(receive_errors),
	VALUE(send_chains),
	VALUE(receive_chains),
	VALUE(eagains),
	VALUE(writables),
	VALUE(rnr_errors),
	VALUE(retry_errors),
	VALUE(receive_queue_empty),
	VALUE(receives_waiting),
#undef VALUE
};

static const struct value base_values[] = {
#define VALUE(name) { #name, offsetof(struct evrdma_base_stats, name) }
	VALUE(connections),
	VALUE(connections_connected),
	VALUE(connections_accepted),
	VALUE(connections_failed),
	VALUE(endpoints),
	VALUE(requests_pending),
	VALUE(requests_accepted),
	VALUE(requests_rejected),
	VALUE(requests_refused),
	VALUE(completions),
	VALUE(polls),
	VALUE(arms),
	VALUE(cq_events),
	VALUE(cm_events),
	VALUE(turns),
	VALUE(tasks),
	VALUE(turns_over_budget),
	VALUE(longest_turn_us),
	VALUE(registrations),
	VALUE(registrations_now),
	VALUE(bytes_pinned),
	VALUE(bytes_pinned_max),
	VALUE(quota_errors),
	VALUE(address_handles),
	VALUE(ids_lingering),
#undef VALUE
};

static const struct value listener_values[] = {
#define VALUE(name) { #name, offsetof(struct evrdma_listener_stats, name) }
	VALUE(requests),
	VALUE(pending),
	VALUE(accepted),
	VALUE(rejected),
	VALUE(moved),
	VALUE(connections),
	VALUE(refused_connections),
	VALUE(refused_pending),
	VALUE(refused_source),
	VALUE(refused_no_memory),
	VALUE(timed_out),
#undef VALUE
};

static const struct value pool_values[] = {
#define VALUE(name) { #name, offsetof(struct evrdma_pool_stats, name) }
	VALUE(bufs),
	VALUE(bufs_out),
	VALUE(bufs_out_max),
	VALUE(gets),
	VALUE(get_errors),
	VALUE(slabs),
	VALUE(slabs_huge),
	VALUE(bytes),
#undef VALUE
};

#define COUNT(values) (sizeof(values) / sizeof((values)[0]))

static void dump(const struct evr_dump *to, const char *what, const struct value *values, size_t n,
	const void *stats)
{
	char text[192];
	uint64_t value;
	size_t i;

	for (i = 0; i < n; i++) {
		memcpy(&value, (const char *)stats + values[i].offset, sizeof(value));
		if (!value)
			continue;
		snprintf(text, sizeof(text), "%s: %s %llu", what, values[i].name,
			(unsigned long long)value);
		to->cb(text, to->arg);
	}
}

void evr_dump_traffic(
	const struct evr_dump *to, const char *what, const struct evrdma_traffic_stats *stats)
{
	dump(to, what, traffic_values, COUNT(traffic_values), stats);
}

void evr_dump_listener(
	const struct evr_dump *to, const char *what, const struct evrdma_listener_stats *stats)
{
	dump(to, what, listener_values, COUNT(listener_values), stats);
}

void evr_dump_pool(
	const struct evr_dump *to, size_t buf_size, const struct evrdma_pool_stats *stats)
{
	char what[48];

	snprintf(what, sizeof(what), "pool of %zu", buf_size);
	dump(to, what, pool_values, COUNT(pool_values), stats);
}

void evrdma_base_dump(const struct evrdma_base *base, evrdma_dump_cb cb, void *arg)
{
	const struct evr_dump to = { .cb = cb, .arg = arg };
	struct evr_obj *obj;

	dump(&to, "base", base_values, COUNT(base_values), &base->stats);
	evr_dump_traffic(&to, "base", &base->traffic);
	evr_parts_dump(base, &to);
	TAILQ_FOREACH (obj, &base->objs, link)
		if (obj->cls->dump)
			obj->cls->dump(obj, &to);
}
