#include "cm/cm.h"
#include "kern/sys.h"

int rpoll(struct pollfd *fds, nfds_t nfds, int timeout)
{
	return evr_cm_result(evr_sys->poll(fds, nfds, timeout));
}
