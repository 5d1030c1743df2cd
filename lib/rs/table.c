/* What the numbers stand for. */
#include "rs/rs.h"

#include "util/fdmap.h"

static struct evr_fdmap table;
static atomic_bool used;

int evr_rs_table_add(int fd, struct evr_rs *rs, struct evr_rs **stale)
{
	int ret = evr_fdmap_make(&table, fd);

	*stale = NULL;
	if (ret)
		return ret;
	atomic_store(&used, true);
	*stale = evr_fdmap_set(&table, fd, rs);
	return 0;
}

struct evr_rs *evr_rs_table_remove(int fd)
{
	return evr_fdmap_set(&table, fd, NULL);
}

static void hold(void *value)
{
	struct evr_rs *rs = value;

	atomic_fetch_add(&rs->refs, 1);
}

struct evr_rs *evr_rs_get(int fd)
{
	return evr_fdmap_get(&table, fd, hold);
}

struct evr_rs *evr_rs_try(int fd)
{
	return evr_fdmap_try(&table, fd, hold);
}

int evr_rs_table_next(int fd)
{
	return evr_fdmap_next(&table, fd, NULL);
}

void evr_rs_table_clear(void)
{
	int fd;

	evr_fdmap_unlock_all(&table);
	for (fd = evr_rs_table_next(0); fd >= 0; fd = evr_rs_table_next(fd))
		evr_fdmap_set(&table, fd, NULL);
}

bool evr_rs_table_is_used(void)
{
	return atomic_load_explicit(&used, memory_order_relaxed);
}
