/* evrdma: RDMA connections inside a libevent loop. See evrdma(7). */
#ifndef EVRDMA_EVRDMA_H
#define EVRDMA_EVRDMA_H

#include <evrdma/base.h>
#include <evrdma/buf.h>
#include <evrdma/bufferevent.h>
#include <evrdma/conn.h>
#include <evrdma/dgram.h>
#include <evrdma/domain.h>
#include <evrdma/error.h>
#include <evrdma/id.h>
#include <evrdma/listener.h>
#include <evrdma/log.h>
#include <evrdma/mcast.h>
#include <evrdma/peer.h>
#include <evrdma/srq.h>
#include <evrdma/stats.h>
#include <evrdma/work.h>

#endif
