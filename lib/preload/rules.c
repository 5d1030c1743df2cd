#include "config.h"

#include "preload/rules.h"

#include <netinet/in.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/socket.h>

enum { LINE = 256, WORD = 64, ANY = -1, IB = 27 };

struct rule {
	char program[WORD];
	int domain, type, protocol;
};

struct evr_pre_rules {
	size_t num;
	struct rule *rules;
};

/* --- reading --------------------------------------------------------------------------------- */

static const struct {
	const char *kind, *name;
	int value;
} words[] = {
	{ "domain", "inet", AF_INET },
	{ "domain", "af_inet", AF_INET },
	{ "domain", "pf_inet", AF_INET },
	{ "domain", "inet6", AF_INET6 },
	{ "domain", "af_inet6", AF_INET6 },
	{ "domain", "pf_inet6", AF_INET6 },
	{ "domain", "ib", IB },
	{ "domain", "af_ib", IB },
	{ "domain", "pf_ib", IB },
	{ "type", "stream", SOCK_STREAM },
	{ "type", "sock_stream", SOCK_STREAM },
	{ "type", "dgram", SOCK_DGRAM },
	{ "type", "sock_dgram", SOCK_DGRAM },
	{ "protocol", "tcp", IPPROTO_TCP },
	{ "protocol", "ipproto_tcp", IPPROTO_TCP },
	{ "protocol", "udp", IPPROTO_UDP },
	{ "protocol", "ipproto_udp", IPPROTO_UDP },
};

static bool read_word(const char *kind, const char *word, int *value)
{
	size_t i;

	*value = ANY;
	if (!strcmp(word, "*"))
		return true;
	for (i = 0; i < sizeof(words) / sizeof(*words); i++)
		if (!strcmp(words[i].kind, kind) && !strcasecmp(words[i].name, word))
			*value = words[i].value;
	return *value != ANY;
}

static bool read_rule(const char *line, struct rule *rule)
{
	char domain[WORD], type[WORD], protocol[WORD];

	if (sscanf(line, "%63s %63s %63s %63s", rule->program, domain, type, protocol) != 4)
		return false;
	if (*rule->program == '#')
		return false;
	return read_word("domain", domain, &rule->domain) &&
	       read_word("type", type, &rule->type) &&
	       read_word("protocol", protocol, &rule->protocol);
}

static bool append(struct evr_pre_rules *rules, const struct rule *rule)
{
	struct rule *more = realloc(rules->rules, (rules->num + 1) * sizeof(*more));

	if (!more)
		return false;
	more[rules->num++] = *rule;
	rules->rules = more;
	return true;
}

struct evr_pre_rules *evr_pre_rules_read(FILE *file)
{
	struct evr_pre_rules *rules = calloc(1, sizeof(*rules));
	char line[LINE];
	struct rule rule;

	while (rules && fgets(line, sizeof(line), file)) {
		if (!read_rule(line, &rule) || append(rules, &rule))
			continue;
		evr_pre_rules_free(rules);
		return NULL;
	}
	return rules;
}

void evr_pre_rules_free(struct evr_pre_rules *rules)
{
	if (rules)
		free(rules->rules);
	free(rules);
}

/* --- matching -------------------------------------------------------------------------------- */

static bool is(int wanted, int value)
{
	return wanted == ANY || wanted == value;
}

static bool is_program(const struct rule *rule, const char *program)
{
	return !strcmp(rule->program, "*") ||
	       !strncasecmp(rule->program, program, strlen(rule->program));
}

/* A peer that has no rsocket gets what it takes for nonsense: none of them is meant by any. */
static bool is_type(int wanted, int type)
{
	return type == SOCK_DGRAM ? wanted == type : is(wanted, type);
}

bool evr_pre_rules_match(const struct evr_pre_rules *rules, const char *program, int domain,
	int type, int protocol)
{
	const struct rule *rule;

	if (!rules || !rules->num)
		return type != SOCK_DGRAM;
	for (rule = rules->rules; rule < rules->rules + rules->num; rule++)
		if (is_program(rule, program) && is(rule->domain, domain) &&
			is_type(rule->type, type) && is(rule->protocol, protocol))
			return true;
	return false;
}
