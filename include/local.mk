evincludedir = $(includedir)/evrdma
evinclude_HEADERS = \
	include/evrdma/evrdma.h \
	include/evrdma/base.h \
	include/evrdma/buf.h \
	include/evrdma/bufferevent.h \
	include/evrdma/conn.h \
	include/evrdma/dgram.h \
	include/evrdma/domain.h \
	include/evrdma/error.h \
	include/evrdma/id.h \
	include/evrdma/listener.h \
	include/evrdma/log.h \
	include/evrdma/mcast.h \
	include/evrdma/peer.h \
	include/evrdma/srq.h \
	include/evrdma/stats.h \
	include/evrdma/work.h

# The CM's headers have a folder of their own, so that they never shadow the distribution's.
if !SYSTEM_RDMACM
cmrdmadir = $(cmincludedir)/rdma
cmrdma_HEADERS = include/rdma/rdma_cma.h include/rdma/rdma_verbs.h include/rdma/rsocket.h
cmibdir = $(cmincludedir)/infiniband
cmib_HEADERS = include/infiniband/ib.h
endif
