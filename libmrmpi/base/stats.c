/* SPDX-License-Identifier: BSD-3-Clause */
/* The counters and their names, and how they are printed at the end of a job. */
#include "libmrmpi/base/base.h"

#include <stdio.h>

uint64_t mr_stats[MR_STAT_COUNT];

static const struct {
    const char *name, *help;
    enum mr_topic topic;
} counters[MR_STAT_COUNT] = {
    [MR_STAT_EAGER_SENT] = {"eager_sent", "messages sent in one packet", MR_TOPIC_MESSAGES},
    [MR_STAT_RNDV_SENT] = {"rendezvous_sent", "messages for which the receiver was asked first", MR_TOPIC_MESSAGES},
    [MR_STAT_READY_SENT] = {"ready_sent", "of these, those of collectives for which the receiver was ready unasked",
                            MR_TOPIC_MESSAGES},
    [MR_STAT_PREFIXES_SENT] = {"prefixes_sent", "of these, those whose first bytes were sent without being asked for",
                               MR_TOPIC_MESSAGES},
    [MR_STAT_BOUNCES_COPIED] = {"bounces_copied", "of these, those whose last bytes were copied to end the send early",
                                MR_TOPIC_MESSAGES},
    [MR_STAT_BY_READ] = {"by_read", "large messages that the receiver read (RDMA)", MR_TOPIC_MESSAGES},
    [MR_STAT_BY_WRITE] = {"by_write", "large messages that the sender wrote (RDMA)", MR_TOPIC_MESSAGES},
    [MR_STAT_BY_CROSSING] = {"by_crossing", "large messages that the sender wrote because they crossed another one",
                             MR_TOPIC_MESSAGES},
    [MR_STAT_BY_READY] = {"by_ready", "large messages of collectives that the sender wrote unasked", MR_TOPIC_MESSAGES},
    [MR_STAT_BY_DATAGRAMS] = {"by_datagrams", "large messages that came as datagrams into their memory",
                              MR_TOPIC_MESSAGES},
    [MR_STAT_BY_PACKETS] = {"by_packets", "large messages that came in packets", MR_TOPIC_MESSAGES},
    [MR_STAT_BY_GET] = {"by_single_copy", "large messages inside a node that the receiver read", MR_TOPIC_MESSAGES},
    [MR_STAT_BY_SHARE] = {"by_shared_copy",
                          "large messages inside a node that came in packets while the receiver could read",
                          MR_TOPIC_MESSAGES},
    [MR_STAT_BY_SPLIT] = {"by_split_copy", "large messages inside a node that both ranks copied, each a part",
                          MR_TOPIC_MESSAGES},
    [MR_STAT_PACKETS_ZCOPY] = {"packets_zcopy", "packets that were sent from the program's memory, without a copy",
                               MR_TOPIC_MESSAGES},
    [MR_STAT_UNEXPECTED] = {"unexpected", "messages that came before their receive was posted", MR_TOPIC_MESSAGES},
    [MR_STAT_NO_CREDIT] = {"no_credit", "short messages for which the receiver was asked first, since it keeps enough",
                           MR_TOPIC_MESSAGES},
    [MR_STAT_CREDITS_SENT] = {"credits_sent", "packets that did nothing but give credit back", MR_TOPIC_MESSAGES},
    [MR_STAT_SENDS_STALLED] = {"sends_stalled", "blocking sends that waited until fewer packets waited for room",
                               MR_TOPIC_MESSAGES},
    [MR_STAT_SENDS_HELD] = {"sends_held", "sends whose data waited in the program's buffer for room",
                            MR_TOPIC_MESSAGES},
    [MR_STAT_OUT_OF_ORDER] = {"out_of_order", "packets that overtook others and were held back", MR_TOPIC_RAILS},
    [MR_STAT_SHM_SENT] = {"shm_sent", "packets to ranks of this node", MR_TOPIC_MESSAGES},
    [MR_STAT_SHM_POOLED] = {"shm_pooled", "those of them whose payload was long and lay in this rank's pool",
                            MR_TOPIC_MESSAGES},
    [MR_STAT_SHM_SINGLE_COPY] = {"shm_single_copy_bytes", "bytes read directly from other processes",
                                 MR_TOPIC_MESSAGES},
    [MR_STAT_SHM_JOBS_SENT] = {"shm_jobs_sent", "packets through shared memory to processes of other jobs",
                               MR_TOPIC_MESSAGES},
    [MR_STAT_COLL_NODE] = {"coll_node", "collective operations through memory that all their ranks share",
                           MR_TOPIC_MESSAGES},
    [MR_STAT_NET_SENT] = {"net_sent", "packets to ranks of other nodes", MR_TOPIC_RAILS},
    [MR_STAT_NET_STRIPES] = {"net_stripes", "parts in which large messages were written to other nodes, or read there",
                             MR_TOPIC_RAILS},
    [MR_STAT_NET_REWEIGHED] =
        {"net_reweighed", "how often the parts that rails get were changed, since they carry more or less than before",
         MR_TOPIC_RAILS},
    [MR_STAT_NET_BEHIND] = {"net_behind",
                            "packets that went with the bulk, since no more of their class may go ahead of it",
                            MR_TOPIC_RAILS},
    [MR_STAT_REG_HITS] = {"reg_cache_hits", "large buffers that were registered already", MR_TOPIC_RAILS},
    [MR_STAT_REG_MISSES] = {"reg_cache_misses", "large buffers that had to be registered", MR_TOPIC_RAILS},
    [MR_STAT_REG_ON_DEMAND] = {"reg_on_demand", "large buffers that were not pinned, since devices page on demand",
                               MR_TOPIC_RAILS},
    [MR_STAT_REG_EVICTED] = {"reg_cache_evicted",
                             "registrations given up for others, since there are as many as may be", MR_TOPIC_RAILS},
    [MR_STAT_REG_UNMAPPED] = {"reg_cache_unmapped", "registrations given up since their memory was unmapped",
                              MR_TOPIC_RAILS},
    [MR_STAT_REG_ENTRIES] = {"reg_cache_entries", "registrations of large buffers at present", MR_TOPIC_RAILS},
    [MR_STAT_REG_ENTRIES_MOST] = {"reg_cache_entries_most", "most such registrations at the same time", MR_TOPIC_RAILS},
    [MR_STAT_REG_BYTES] = {"reg_cache_bytes", "bytes that they register at present", MR_TOPIC_RAILS},
    [MR_STAT_REG_BYTES_MOST] = {"reg_cache_bytes_most", "most bytes registered by them at the same time",
                                MR_TOPIC_RAILS},
    [MR_STAT_REG_KEPT] = {"reg_cache_kept",
                          "1 where registrations outlive their use, since the unmapping of memory is seen",
                          MR_TOPIC_RAILS},
    [MR_STAT_CONNECTS] = {"connects", "peers of other nodes that a connection was made to", MR_TOPIC_CONNECTIONS},
    [MR_STAT_CONNECT_RETRIES] = {"connect_retries", "requests and answers of connecting that were repeated",
                                 MR_TOPIC_CONNECTIONS},
    [MR_STAT_BROKEN] = {"broken", "paths to peers that broke, or whose port went down", MR_TOPIC_CONNECTIONS},
    [MR_STAT_REOPENED] = {"reopened", "handshakes that opened such paths again", MR_TOPIC_CONNECTIONS},
    [MR_STAT_RESENT] = {"resent", "packets that were sent again, since their path broke or nobody acknowledged them",
                        MR_TOPIC_CONNECTIONS},
    [MR_STAT_KEEPALIVES] = {"keepalives",
                            "times that the adapter of a peer from which nothing came was asked for a sign of life",
                            MR_TOPIC_CONNECTIONS},
    [MR_STAT_QUESTIONS] = {"questions",
                           "times that a peer was asked whether it is there, since packets to it came to nothing",
                           MR_TOPIC_CONNECTIONS},
    [MR_STAT_MOVED] = {"moved", "parts of large messages that moved to another path, since theirs broke",
                       MR_TOPIC_CONNECTIONS},
    [MR_STAT_DETACHED] = {"detached",
                          "puts and gets on memory in dynamic windows that went another way, since its keys were gone",
                          MR_TOPIC_CONNECTIONS},
    [MR_STAT_LOCKS] = {"locks", "locks of windows that the adapter of another host has taken for this process",
                       MR_TOPIC_CONNECTIONS},
    [MR_STAT_LOCKS_CLEARED] = {"locks_cleared",
                               "times that a connection broke while one was taken or given back: the target cleared it",
                               MR_TOPIC_CONNECTIONS},
    [MR_STAT_ENDS_READ] = {"ends_read",
                           "ends of other ranks that were read in the launcher's file, before any other news of them",
                           MR_TOPIC_CONNECTIONS},
    [MR_STAT_CHANGED] = {"changed", "times that the paths to a peer were changed for others on new service levels",
                         MR_TOPIC_CONNECTIONS},
    [MR_STAT_EVICTED] = {"evicted", "connections that were closed for those of other ranks", MR_TOPIC_CONNECTIONS},
    [MR_STAT_REFUSED] = {"refused", "requests for a connection that were refused, since there are as many as may be",
                         MR_TOPIC_CONNECTIONS},
    [MR_STAT_RATIONED_MOST] = {"connections_most",
                               "most ranks to which connections were open, or kept, at the same time, where they are "
                               "counted (MRMPI_RC_PEERS)",
                               MR_TOPIC_CONNECTIONS},
    [MR_STAT_QPS_MOST] = {"queue_pairs_most", "most queue pairs at the same time, but those for connecting",
                          MR_TOPIC_CONNECTIONS},
    [MR_STAT_RING_SENT] = {"ring_sent", "packets that were written into the ring of another rank", MR_TOPIC_RAILS},
    [MR_STAT_RING_FULL] = {"ring_full", "packets that found a ring full, and were sent", MR_TOPIC_RAILS},
    [MR_STAT_RING_CREDITS] = {"ring_credits", "writes that did nothing but tell what is free of a ring",
                              MR_TOPIC_RAILS},
    [MR_STAT_RINGS_MOST] = {"rings_most", "most ranks that could write into rings of this one at the same time",
                            MR_TOPIC_CONNECTIONS},
    [MR_STAT_RINGS_WITHDRAWN] = {"rings_withdrawn", "ranks whose rings were given up for those of others",
                                 MR_TOPIC_CONNECTIONS},
    [MR_STAT_REWRITTEN] = {"rewritten",
                           "writes of large messages that were done again, since the peer had not got them",
                           MR_TOPIC_CONNECTIONS},
    [MR_STAT_UD_SENT] = {"ud_sent", "packets that were sent as datagrams, ACKs of their own among them",
                         MR_TOPIC_RAILS},
    [MR_STAT_UD_ZCOPY] = {"ud_zcopy", "large messages that came as datagrams, directly into the program's memory",
                          MR_TOPIC_RAILS},
    [MR_STAT_UD_NO_QP] =
        {"ud_no_qp", "large messages that found all queue pairs for datagrams taken: they waited, or came in packets",
         MR_TOPIC_RAILS},
    [MR_STAT_UD_RECALLED] =
        {"ud_recalled", "such queue pairs that were taken back from senders that said nothing, since others waited",
         MR_TOPIC_RAILS},
    [MR_STAT_UD_MISPLACED] = {"ud_misplaced", "moves of datagrams that landed in the place of another one",
                              MR_TOPIC_CONNECTIONS},
    [MR_STAT_UD_MISSING] = {"ud_missing", "datagrams of large messages that did not come, and were asked for again",
                            MR_TOPIC_CONNECTIONS},
    [MR_STAT_UD_STRAY] = {"ud_stray", "datagrams that came to a queue pair that was not cleared for them",
                          MR_TOPIC_CONNECTIONS},
    [MR_STAT_ACKS_SENT] = {"acks_sent", "packets that did nothing but acknowledge others", MR_TOPIC_CONNECTIONS},
    [MR_STAT_ACKS_CARRIED] = {"acks_carried", "acknowledgements that went with other packets", MR_TOPIC_CONNECTIONS},
    [MR_STAT_TIMEOUTS] = {"timeouts", "how often packets were not acknowledged in time", MR_TOPIC_CONNECTIONS},
    [MR_STAT_DUPLICATES] = {"duplicates", "packets that came again, and were dropped", MR_TOPIC_CONNECTIONS},
    [MR_STAT_WINDOW_MOST] = {"unconfirmed_most", "most packets to one peer that were kept until they were confirmed",
                             MR_TOPIC_CONNECTIONS},
    [MR_STAT_WINDOW_BYTES] = {"unconfirmed_bytes_most", "most bytes of such packets to one peer", MR_TOPIC_CONNECTIONS},
    [MR_STAT_MODEL_COPY_MBPS] = {"model_copy_mbps", "MB/s that a processor copies, as estimated (MRMPI_MODEL)",
                                 MR_TOPIC_MESSAGES},
    [MR_STAT_MODEL_REGISTER_NS] = {"model_register_ns", "nanoseconds of a registration, as estimated",
                                   MR_TOPIC_MESSAGES},
    [MR_STAT_MODEL_REGISTER_BYTE_PS] = {"model_register_byte_ps",
                                        "picoseconds of a registration for each byte beyond 128 KiB, as estimated",
                                        MR_TOPIC_MESSAGES},
    [MR_STAT_MODEL_TRIP_NS] = {"model_trip_ns", "nanoseconds of a round trip between hosts, as estimated",
                               MR_TOPIC_MESSAGES},
    [MR_STAT_MODEL_POST_NS] = {"model_post_ns",
                               "nanoseconds for posting a request and taking its completion, as estimated",
                               MR_TOPIC_MESSAGES},
    [MR_STAT_MODEL_PAGE_NS] = {"model_page_ns",
                               "nanoseconds for making a page of memory shared inside a host, as estimated",
                               MR_TOPIC_MESSAGES},
    [MR_STAT_SEEN_COPY_MBPS] = {"seen_copy_mbps", "MB/s of the few copies of messages that were timed; 0: none was",
                                MR_TOPIC_MESSAGES},
    [MR_STAT_SEEN_MEMORY_MBPS] = {"seen_memory_mbps",
                                  "MB/s of copies in memory outside of caches, as measured; 0: not measured",
                                  MR_TOPIC_MESSAGES},
    [MR_STAT_SEEN_REGISTER_NS] = {"seen_register_ns", "nanoseconds of a registration, as measured; 0: not measured",
                                  MR_TOPIC_MESSAGES},
    [MR_STAT_SEEN_REGISTER_BYTE_PS] = {"seen_register_byte_ps",
                                       "picoseconds for each byte beyond 128 KiB, as measured; 0: not measured",
                                       MR_TOPIC_MESSAGES},
    [MR_STAT_SEEN_TRIP_NS] = {"seen_trip_ns", "nanoseconds of a round trip between hosts, as measured; 0: not measured",
                              MR_TOPIC_MESSAGES},
    [MR_STAT_SEEN_POST_NS] = {"seen_post_ns",
                              "nanoseconds for posting a request, without its completion, as measured; 0: not measured",
                              MR_TOPIC_MESSAGES},
    [MR_STAT_SEEN_PAGE_NS] = {"seen_page_ns",
                              "nanoseconds for making a page of memory shared inside a host, as measured; 0: not "
                              "measured",
                              MR_TOPIC_MESSAGES},
};

uint64_t mr_stat_get(enum mr_stat s)
{
    return __atomic_load_n(&mr_stats[s], __ATOMIC_RELAXED);
}

const char *mr_stat_name(enum mr_stat s)
{
    return s < MR_STAT_COUNT ? counters[s].name : "";
}

const char *mr_stat_help(enum mr_stat s)
{
    return s < MR_STAT_COUNT ? counters[s].help : "";
}

enum mr_topic mr_stat_topic(enum mr_stat s)
{
    return s < MR_STAT_COUNT ? counters[s].topic : MR_TOPIC_JOB;
}

bool mr_stat_is_level(enum mr_stat s)
{
    return s == MR_STAT_REG_ENTRIES || s == MR_STAT_REG_BYTES || s == MR_STAT_REG_KEPT ||
           (s >= MR_STAT_MODEL_COPY_MBPS && s <= MR_STAT_SEEN_PAGE_NS);
}

static const struct {
    const char *name, *help;
} rail_counters[MR_RAIL_STAT_COUNT] = {
    [MR_RAIL_PACKETS_SENT] = {"rail_packets_sent", "packets sent over the rail, each time that they were"},
    [MR_RAIL_PACKETS_RECEIVED] = {"rail_packets_received", "packets received over the rail"},
    [MR_RAIL_BYTES_SENT] = {"rail_bytes_sent", "bytes of the packets sent, with their headers"},
    [MR_RAIL_BYTES_RECEIVED] = {"rail_bytes_received", "bytes of the packets received, with their headers"},
    [MR_RAIL_STRIPES_WRITTEN] = {"rail_stripes_written",
                                 "parts of large messages that this rank wrote to peers over the rail"},
    [MR_RAIL_BYTES_WRITTEN] = {"rail_bytes_written", "bytes of large messages that this rank wrote to peers"},
    [MR_RAIL_STRIPES_READ] = {"rail_stripes_read",
                              "parts of large messages that this rank read from peers over the rail"},
    [MR_RAIL_BYTES_READ] = {"rail_bytes_read", "bytes of large messages that this rank read from peers"},
    [MR_RAIL_RESENT] = {"rail_resent", "packets that were sent again: when their path over the rail broke, or over the "
                                       "rail when nobody acknowledged them; and "
                                       "writes of large messages that the peer had not got"},
    [MR_RAIL_MOVED] = {"rail_moved",
                       "parts of large messages that went to another path, since theirs over the rail broke"},
    [MR_RAIL_REWEIGHED] = {"rail_reweighed", "weights of paths over the rail that were changed"},
    [MR_RAIL_OPENED] = {"rail_opened", "paths to peers that were opened over the rail"},
    [MR_RAIL_BROKEN] = {"rail_broken", "paths over the rail that broke"},
    [MR_RAIL_CLOSED] = {"rail_closed", "paths over the rail that were closed, those that had broken among them"},
    [MR_RAIL_PORT_DOWNS] = {"rail_port_downs", "how often the port went down"},
    [MR_RAIL_DOWN_NS] = {"rail_down_ns", "nanoseconds that the port has been down"},
    [MR_RAIL_AILED] = {"rail_ailed", "how often fabricd said that the rail is less healthy than before, or drained"},
};
const char mr_rail_share_help[] = "what part of a large message the rail gets by the present weights, on average over "
                                  "the peers that this rank is connected to";

const char *mr_rail_stat_name(enum mr_rail_stat s)
{
    return s < MR_RAIL_STAT_COUNT ? rail_counters[s].name : "";
}

const char *mr_rail_stat_help(enum mr_rail_stat s)
{
    return s < MR_RAIL_STAT_COUNT ? rail_counters[s].help : "";
}

void mr_stats_print(void)
{
    char line[1400];
    int used = 0;

    for (int s = 0; s < MR_STAT_COUNT && used < (int)sizeof(line); s++)
        if (mr_stat_get(s))
            used += snprintf(line + used, sizeof(line) - used, " %s=%llu", counters[s].name,
                             (unsigned long long)mr_stat_get(s));
    mr_log_print(MR_LOG_INFO, "counters:%s", used ? line : " all zero");
}
