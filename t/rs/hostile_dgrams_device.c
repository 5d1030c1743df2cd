/* hostile_dgrams IP: the strangers on a device that is there; nobody else may use one. */
#include "rs/hostile_dgrams.h"

#include "schedule/resources.h"

static unsigned int count_objects(void)
{
	uint64_t counts[RESOURCES];

	ck_assert_int_eq(resources_count(counts), 0);
	return (unsigned int)(counts[RESOURCE_QP] + counts[RESOURCE_CQ] + counts[RESOURCE_MR] +
			      counts[RESOURCE_CM_ID]);
}

static void nothing(void)
{
}

int main(int argc, char **argv)
{
	if (argc != 2)
		return 2;
	hostile_dgram_place.ip = argv[1];
	hostile_dgram_place.count_objects = count_objects;
	return hostile_dgrams_run(nothing, nothing);
}
