# The names of what a process asks of the CM's device and of the verbs' device, by the kind of the
# request (cm, verbs, ioctl) and its number.

function load(table, kind, names,	i, list) {
	for (i = split(names, list, " "); i > 0; i--)
		table[kind, i - 1] = list[i]
}

# An ioctl's number is its method in the upper half and its object in the lower.
function name_of(kind, number,	object, method) {
	if (kind != "ioctl")
		return (kind, number) in command ? command[kind, number] : kind " " number
	object = number % 65536
	method = int(number / 65536)
	if (!((object, method) in method_of))
		return (method ? "DESTROY_" : "CREATE_") object_of["", object]
	return method_of[object, method]
}

BEGIN {
	load(command, "cm", "CREATE_ID DESTROY_ID BIND_IP RESOLVE_IP RESOLVE_ROUTE QUERY_ROUTE " \
		"CONNECT LISTEN ACCEPT REJECT DISCONNECT INIT_QP_ATTR GET_EVENT GET_OPTION " \
		"SET_OPTION NOTIFY JOIN_IP_MCAST LEAVE_MCAST MIGRATE_ID QUERY BIND RESOLVE_ADDR " \
		"JOIN_MCAST")
	load(command, "verbs", "GET_CONTEXT QUERY_DEVICE QUERY_PORT ALLOC_PD DEALLOC_PD " \
		"CREATE_AH MODIFY_AH QUERY_AH DESTROY_AH REG_MR REG_SMR REREG_MR QUERY_MR " \
		"DEREG_MR ALLOC_MW BIND_MW DEALLOC_MW CREATE_COMP_CHANNEL CREATE_CQ RESIZE_CQ " \
		"DESTROY_CQ POLL_CQ PEEK_CQ REQ_NOTIFY_CQ CREATE_QP QUERY_QP MODIFY_QP " \
		"DESTROY_QP POST_SEND POST_RECV ATTACH_MCAST DETACH_MCAST CREATE_SRQ " \
		"MODIFY_SRQ QUERY_SRQ DESTROY_SRQ POST_SRQ_RECV OPEN_XRCD CLOSE_XRCD")
	load(object_of, "", "DEVICE PD COMP_CHANNEL CQ QP SRQ AH MR MW FLOW XRCD RWQ_IND_TBL WQ " \
		"FLOW_ACTION DM COUNTERS ASYNC_EVENT")
	load(method_of, 0, "INVOKE_WRITE INFO_HANDLES QUERY_PORT GET_CONTEXT QUERY_CONTEXT " \
		"QUERY_GID_TABLE QUERY_GID_ENTRY")
	method_of[1, 0] = "DEALLOC_PD"
	method_of[6, 0] = "DESTROY_AH"
	method_of[10, 0] = "CLOSE_XRCD"
	method_of[7, 1] = "DEREG_MR"
}
