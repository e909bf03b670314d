/* The shape of ip_vs_in in net/netfilter/ipvs/ip_vs_core.c of Linux 2.6.30, Fig. 12 of the paper. */
struct ip_vs_conn {
	atomic_t in_pkts;
	__u16 protocol;
	volatile __u16 state;
};

static unsigned int
ip_vs_in(unsigned int hooknum, struct sk_buff *skb,
	 const struct net_device *in, const struct net_device *out,
	 int (*okfn)(struct sk_buff *))
{
	struct ip_vs_conn *cp;
	int ret, af = AF_INET;

	cp = ip_vs_conn_in_get(af, skb);
	ret = ip_vs_packet_xmit(skb, cp);

	atomic_inc(&cp->in_pkts);
	if (af == AF_INET && //~ misused-atomics
	    (ip_vs_sync_state & IP_VS_STATE_MASTER) &&
	    (((cp->protocol != IPPROTO_TCP ||
	       cp->state == IP_VS_TCP_S_ESTABLISHED) &&
	      (atomic_read(&cp->in_pkts) % sysctl_ip_vs_sync_threshold[1]
	       == sysctl_ip_vs_sync_threshold[0]))))
		ip_vs_sync_conn(cp);
	ip_vs_conn_put(cp);
	return ret;
}

static struct nf_hook_ops ip_vs_ops[] = {
	{
		.hook	  = ip_vs_in,
		.hooknum  = NF_INET_LOCAL_IN,
	},
};
