/* The rules of preload_config. */
#include "preload/rules.h"

#include <netinet/in.h>
#include <sys/socket.h>

#include "unit/unit.h"

static struct evr_pre_rules *read_text(const char *text)
{
	FILE *file = fmemopen((void *)text, strlen(text), "r");
	struct evr_pre_rules *rules = evr_pre_rules_read(file);

	ck_assert_ptr_nonnull(rules);
	fclose(file);
	return rules;
}

/* A stream of the domain, in that program. */
static bool takes(const char *text, const char *program, int domain)
{
	struct evr_pre_rules *rules = read_text(text);
	bool match = evr_pre_rules_match(rules, program, domain, SOCK_STREAM, IPPROTO_TCP);

	evr_pre_rules_free(rules);
	return match;
}

START_TEST(without_a_rule_all_is_taken)
{
	ck_assert(evr_pre_rules_match(NULL, "nc", AF_INET, SOCK_STREAM, IPPROTO_TCP));
	ck_assert(takes("# nothing\n", "nc", AF_INET));
	ck_assert(takes("nc inet stream\n", "curl", AF_INET));
}
END_TEST

START_TEST(a_program_is_named_by_its_beginning)
{
	ck_assert(takes("redis * * *\n", "redis-server", AF_INET));
	ck_assert(takes("Redis * * *\n", "redis-server", AF_INET));
	ck_assert(!takes("redis-s * * *\n", "redis", AF_INET));
	ck_assert(!takes("redis * * *\n", "nc", AF_INET));
	ck_assert(takes("* * * *\n", "nc", AF_INET));
}
END_TEST

START_TEST(a_domain_has_three_names)
{
	ck_assert(takes("* inet * *\n", "nc", AF_INET));
	ck_assert(takes("* AF_INET * *\n", "nc", AF_INET));
	ck_assert(takes("* pf_inet * *\n", "nc", AF_INET));
	ck_assert(!takes("* inet * *\n", "nc", AF_INET6));
	ck_assert(takes("* INET6 * *\n", "nc", AF_INET6));
	ck_assert(!takes("* ib * *\n", "nc", AF_INET));
}
END_TEST

START_TEST(a_type_and_a_protocol_have_two)
{
	ck_assert(takes("* * stream tcp\n", "nc", AF_INET));
	ck_assert(takes("* * SOCK_STREAM IPPROTO_TCP\n", "nc", AF_INET));
	ck_assert(!takes("* * dgram *\n", "nc", AF_INET));
	ck_assert(!takes("* * stream udp\n", "nc", AF_INET));
}
END_TEST

static bool takes_dgram(const char *text)
{
	struct evr_pre_rules *rules = read_text(text);
	bool match = evr_pre_rules_match(rules, "nc", AF_INET, SOCK_DGRAM, IPPROTO_UDP);

	evr_pre_rules_free(rules);
	return match;
}

START_TEST(datagrams_are_taken_only_where_a_rule_names_them)
{
	ck_assert(!evr_pre_rules_match(NULL, "nc", AF_INET, SOCK_DGRAM, IPPROTO_UDP));
	ck_assert(!takes_dgram("# nothing\n"));
	ck_assert(!takes_dgram("* * * *\n* * stream *\n* * * udp\n"));
	ck_assert(!takes_dgram("curl * dgram *\n* inet6 dgram *\n* * dgram tcp\n"));
	ck_assert(takes_dgram("nc inet dgram udp\n"));
	ck_assert(takes_dgram("* * * *\n* * SOCK_DGRAM *\n"));
}
END_TEST

START_TEST(any_rule_suffices)
{
	static const char text[] = "# programs\nnc inet stream tcp\n\ncurl inet6 stream tcp\n";

	ck_assert(takes(text, "nc", AF_INET));
	ck_assert(takes(text, "curl", AF_INET6));
	ck_assert(!takes(text, "curl", AF_INET));
}
END_TEST

/* A word that is none makes no rule of it: nothing more is taken than was meant. */
START_TEST(a_line_that_is_no_rule_is_passed_over)
{
	ck_assert(!takes("* inet stream sctp\nnc * * *\n", "curl", AF_INET));
	ck_assert(!takes("* unix * *\nnc * * *\n", "curl", AF_INET));
	ck_assert(!takes("#* * * *\nnc * * *\n", "curl", AF_INET));
	ck_assert(takes("* inet stream sctp\nnc * * *\n", "nc", AF_INET));
}
END_TEST

int main(void)
{
	const TTest *const tests[] = {
		without_a_rule_all_is_taken,
		a_program_is_named_by_its_beginning,
		a_domain_has_three_names,
		a_type_and_a_protocol_have_two,
		datagrams_are_taken_only_where_a_rule_names_them,
		any_rule_suffices,
		a_line_that_is_no_rule_is_passed_over,
	};

	return unit_main("rules", tests, sizeof(tests) / sizeof(*tests), NULL, NULL);
}
