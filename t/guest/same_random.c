/*
 * What a user-mode kernel takes from its host for chance, the same in every run: loaded into it
 * where a run can be repeated (see uml.sh).
 */
#include <stdint.h>
#include <sys/random.h>

ssize_t getrandom(void *to, size_t len, unsigned flags)
{
	static uint64_t state = 1;
	unsigned char *bytes = to;
	size_t i;

	(void)flags;
	for (i = 0; i < len; i++) {
		state = state * 6364136223846793005u + 1442695040888963407u;
		bytes[i] = (unsigned char)(state >> 56);
	}
	return (ssize_t)len;
}
