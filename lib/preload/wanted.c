#include "config.h"

#include <errno.h>
#include <netinet/in.h>
#include <pthread.h>
#include <stdlib.h>

#include "preload/preload.h"
#include "preload/rules.h"

#define FILE_OF_RULES "/etc/rdma/rsocket/preload_config"

static pthread_once_t once = PTHREAD_ONCE_INIT;
static struct evr_pre_rules *rules;

static const char *file_of_rules(void)
{
	const char *name = getenv("RS_PRELOAD_CONFIG");

	return name ? name : FILE_OF_RULES;
}

static void read_rules(void)
{
	int saved = errno;
	FILE *file = fopen(file_of_rules(), "re");

	if (file) {
		rules = evr_pre_rules_read(file);
		fclose(file);
	}
	errno = saved;
}

bool evr_pre_is_wanted(int domain, int type, int protocol)
{
	int kind = evr_pre_kind_of(type);
	int usual = kind == SOCK_STREAM ? IPPROTO_TCP : IPPROTO_UDP;

	if (domain != AF_INET && domain != AF_INET6)
		return false;
	if (kind != SOCK_STREAM && kind != SOCK_DGRAM)
		return false;
	if (protocol && protocol != usual)
		return false;
	pthread_once(&once, read_rules);
	return evr_pre_rules_match(rules, program_invocation_short_name, domain, kind, usual);
}
