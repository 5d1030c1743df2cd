#include "options.h"
#include "common.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

/* Two for each option, -h and the end. */
#define LETTERS_MAX 64

static int takes_value(const struct tool_option *option)
{
	return option->number || option->text || option->format || option->read;
}

/* For getopt(). */
static void list_letters(const struct tool_option *option, char *letters)
{
	for (; option->letter; option++) {
		*letters++ = (char)option->letter;
		if (takes_value(option))
			*letters++ = ':';
	}
	*letters++ = 'h';
	*letters = '\0';
}

static int parse_number(const struct tool_option *option, const char *text)
{
	char *end;
	unsigned long value;

	if (*text < '0' || *text > '9')
		return -EINVAL;
	errno = 0;
	value = strtoul(text, &end, option->base);
	if (*end)
		return -EINVAL;
	if (errno || value < option->min || value > option->max)
		return -ERANGE;
	*option->number = (long)value;
	return 0;
}

static int read_number(const char *name, const struct tool_option *option, const char *text)
{
	int ret = parse_number(option, text);

	if (!ret)
		return 0;
	return tool_complain(name, "-%c %s: %s; give a number from %lu to %lu%s%s", option->letter,
		text, ret == -ERANGE ? "out of range" : "not a number", option->min, option->max,
		option->word ? ", or " : "", option->word ? option->word : "");
}

static int read_format(const char *name, const struct tool_option *option, const char *text)
{
	int format = address_format(text);

	if (format < 0)
		return tool_complain(name, "-%c %s: no such format; give name, ip, ipv6 or gid",
			option->letter, text);
	*option->format = (enum address_format)format;
	return 0;
}

static int read_option(
	const struct tool_command *command, const struct tool_option *option, const char *text)
{
	int ret = option->read ? option->read(command->arg, text) : 1;

	if (ret <= 0)
		return ret;
	if (option->flag)
		*option->flag = 1;
	if (option->text)
		*option->text = text;
	if (option->format)
		return read_format(command->name, option, text);
	return option->number ? read_number(command->name, option, text) : 0;
}

static int read_letter(const struct tool_command *command, int letter, const char *text)
{
	const struct tool_option *option = command->options;

	if (letter == 'h') {
		fputs(command->usage, stdout);
		exit(tool_end_output(command->name, EXIT_SUCCESS));
	}
	while (option->letter && option->letter != letter)
		option++;
	return option->letter ? read_option(command, option, text) : 1;
}

static int read_words(const struct tool_command *command, int n, char **words)
{
	if (command->read_words)
		return command->read_words(command->arg, n, words);
	if (!n)
		return 0;
	tool_complain(command->name, "%s: not an option", words[0]);
	return 1;
}

int tool_read_options(const struct tool_command *command, int argc, char **argv)
{
	char letters[LETTERS_MAX];
	int letter, ret = 0;

	list_letters(command->options, letters);
	while (!ret && (letter = getopt(argc, argv, letters)) != -1)
		ret = read_letter(command, letter, optarg);
	if (!ret)
		ret = read_words(command, argc - optind, argv + optind);
	if (ret > 0)
		fputs(command->usage, stderr);
	return ret;
}
