#include "simple.h"

int main(int argc, char **argv)
{
	static const struct simple_kind kind = {
		.name = "rdma_xclient", .is_client = 1, .has_xrc = 1
	};

	return simple_main(&kind, argc, argv);
}
