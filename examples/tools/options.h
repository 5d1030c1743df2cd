/* The command line: what the options are is said in a table, and numbers are read strictly. */
#ifndef TOOLS_OPTIONS_H
#define TOOLS_OPTIONS_H

#include "address.h"

/* An option, and where it goes. Without anything but a flag it takes no value. */
struct tool_option {
	int letter; /* 0 ends the table */
	int base;   /* of the number, as for strtoul(); 0 takes 0x as well */
	unsigned long min;
	unsigned long max;
	long *number;
	const char **text;
	enum address_format *format;
	int *flag; /* becomes 1 */
	/* First of all. Returns 0, -1 after a complaint, or 1 to go on with the rest of these. */
	int (*read)(void *arg, const char *text);
	const char *word; /* that it takes in the place of a number; NULL: none */
};

struct tool_command {
	const char *name;
	const char *usage; /* what -h prints */
	const struct tool_option *options;
	/* What follows the options; NULL: nothing may. Returns as tool_read_options() does. */
	int (*read_words)(void *arg, int n, char **words);
	void *arg; /* of the calls */
};

/*
 * Returns 0, -1 after a complaint, or 1 after the usage as well; -h ends the process. What was read
 * until then stands.
 */
int tool_read_options(const struct tool_command *command, int argc, char **argv);

#endif
