#include "rs/hostile_objects.h"

#include <check.h>

#include "schedule/resources.h"

unsigned int hostile_objects(void)
{
	uint64_t counts[RESOURCES];

	ck_assert_int_eq(resources_count(counts), 0);
	return (unsigned int)(counts[RESOURCE_QP] + counts[RESOURCE_CQ] + counts[RESOURCE_MR] +
			      counts[RESOURCE_CM_ID]);
}
