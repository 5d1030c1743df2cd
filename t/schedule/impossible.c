#include "schedule/impossible.h"

const struct impossible impossible[] = {
	{ 0 },
};
