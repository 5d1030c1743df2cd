#include "destroy/main.h"

int main(void)
{
	return destroy_main(FAKE_ROCE);
}
