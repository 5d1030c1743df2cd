/* What to do when a call of a socket fails. */
#ifndef TOOLS_REMEDY_H
#define TOOLS_REMEDY_H

/*
 * What follows the text of an error that a call gave, with "; " in front of it, or "" when there is
 * nothing to say. A plain socket is TCP's or UDP's.
 */
const char *remedy_find(int err, int plain);

/* The same for who connects: on iWARP an address that is on no device is EINVAL. */
const char *remedy_find_client(int err, int plain);

/*
 * The same for a server, which has a port: another program that has it is no EADDRINUSE in all
 * cases. bound says that the server was given an address.
 */
const char *remedy_find_server(int err, int plain, int bound);

#endif
