#include "simple.h"

int main(int argc, char **argv)
{
	static const struct simple_kind kind = {
		.name = "rdma_server", .is_client = 0, .has_reply = 1
	};

	return simple_main(&kind, argc, argv);
}
