/* TLS for bufferevents of the suite. */
#ifndef EVR_CONFORM_BUFFEREVENT_TLS_H
#define EVR_CONFORM_BUFFEREVENT_TLS_H

#include <event2/bufferevent_ssl.h>

/* A key and its certificate, which a client trusts. */
void tls_start(void);
void tls_stop(void);

/* A filter that owns what is below. */
struct bufferevent *tls_upon(
	struct bufferevent *bev, enum bufferevent_ssl_state state, int options);

#endif
