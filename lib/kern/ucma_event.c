#include "kern/ucma_event.h"
#include "kern/ucma.h"

#include <string.h>

void evr_ucma_event_decode(const struct evr_ucma_resp_event *resp, struct evr_ucma_event *event)
{
	event->uid = resp->uid;
	event->handle = resp->handle;
	event->type = resp->event;
	event->status = (int)resp->status;
	event->ece = resp->ece;
	memcpy(&event->param, &resp->param, sizeof(event->param));
}

int evr_ucma_event_read(int fd, struct evr_ucma_event *event)
{
	struct evr_ucma_resp_event resp;
	int ret = evr_ucma_get_event(fd, &resp);

	if (!ret)
		evr_ucma_event_decode(&resp, event);
	return ret;
}

/* A length is one byte, the field 256: it cannot point outside as long as this holds. */
_Static_assert(EVR_UCMA_PRIVATE_DATA_MAX > UINT8_MAX, "private data may exceed its field");

static struct evr_ucma_event_data data_of(const uint8_t *bytes, uint8_t len)
{
	return (struct evr_ucma_event_data){ len ? bytes : NULL, len };
}

struct evr_ucma_event_data evr_ucma_event_conn_data(const struct evr_ucma_event *event)
{
	return data_of(event->param.conn.private_data, event->param.conn.private_data_len);
}

struct evr_ucma_event_data evr_ucma_event_ud_data(const struct evr_ucma_event *event)
{
	return data_of(event->param.ud.private_data, event->param.ud.private_data_len);
}

uint64_t evr_ucma_event_arg(const struct evr_ucma_event *event)
{
	uint64_t arg;

	_Static_assert(sizeof(arg) == sizeof(event->param.arg32), "the halves of one number");
	memcpy(&arg, event->param.arg32, sizeof(arg));
	return arg;
}
