# Sourced in each of two guests: the network between them.
case $EVR_ROLE in
a) EVR_PEER=b self_n=1 peer_n=2 ;;
*) EVR_PEER=a self_n=2 peer_n=1 ;;
esac
EVR_SELF_IP4=10.77.0.$self_n EVR_SELF_IP6=fd77::$self_n
EVR_PEER_IP4=10.77.0.$peer_n EVR_PEER_IP6=fd77::$peer_n
export EVR_PEER EVR_SELF_IP4 EVR_SELF_IP6 EVR_PEER_IP4 EVR_PEER_IP6

ip link set eth0 up
ip addr add "$EVR_SELF_IP4/24" dev eth0
ip addr add "$EVR_SELF_IP6/64" dev eth0 nodad
ip route add 224.0.0.0/4 dev eth0
