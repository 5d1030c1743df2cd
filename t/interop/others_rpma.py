"""librpma asks for the context of an address, and works with it when the id it asked is long gone."""
import ctypes
import os

LOCAL, REMOTE = 0, 1
ATTR_BYTES = 4096

rpma = ctypes.CDLL("librpma.so.0")
verbs = ctypes.CDLL("libibverbs.so.1")


def say(what, result):
    print(what, result)
    return result


def work_with(context):
    peer = ctypes.c_void_p()
    attr = ctypes.create_string_buffer(ATTR_BYTES)
    say("query the device:", verbs.ibv_query_device(context, attr))
    if not say("make a peer:", rpma.rpma_peer_new(context, ctypes.byref(peer))):
        say("delete it:", rpma.rpma_peer_delete(ctypes.byref(peer)))


for kind in LOCAL, REMOTE, LOCAL:
    context = ctypes.c_void_p()
    address = os.environ["EVR_IP4"].encode()
    if say("find a context:", rpma.rpma_utils_get_ibv_context(address, kind, ctypes.byref(context))):
        raise SystemExit(1)
    for _ in range(2):
        work_with(context)
