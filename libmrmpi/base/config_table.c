/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The settings of the library. A row names the variable, its field of struct mr_config, its kind, default, bounds and
 * unit, and its effect; libmrmpi(7) and the control variables of MPI_T are made from these rows.
 */
#include "libmrmpi/base/config_table.h"

#include <limits.h>

#define SIZE     MR_SETTING_SIZE
#define INT      MR_SETTING_INT
#define BOOL     MR_SETTING_BOOL
#define STRING   MR_SETTING_STRING
#define FIELD(f) offsetof(struct mr_config, f)
#define KIB      (1LL << 10)
#define GIB      (1LL << 30)

enum { AT_INIT, ANYTIME }; /* when a change works */

const struct mr_config_row mr_config_rows[] = {
    {"MRMPI_EAGER_MAX", NULL, FIELD(eager_max), SIZE, "8K", MR_EAGER_LEAST, 64 * KIB, "bytes",
     "largest packet between hosts. A message that fits is sent at once, with its data; longer ones wait for the "
     "receiver (but see MRMPI_EAGER_PACKETS). More saves small messages a round trip and takes more memory for "
     "receive buffers. Where two ranks differ the smaller value counts",
     MR_TOPIC_MESSAGES, AT_INIT},
    {"MRMPI_EAGER_PACKETS", NULL, FIELD(eager_packets), INT, "2", 1, 4, "packets",
     "messages between hosts that are a little longer than MRMPI_EAGER_MAX are sent at once, too, if they fit into "
     "so many packets. Longer ones are first announced, and move when the receiver is ready, without a copy. 1: all "
     "that do not fit one packet are announced. More helps programs that wait for each message of some ten KiB",
     MR_TOPIC_MESSAGES, AT_INIT},
    {"MRMPI_SHM_EAGER_MAX", NULL, FIELD(shm_eager_max), SIZE, "16K", 64, 64 * KIB, "bytes",
     "inside a host, messages up to this length go through shared memory at once; longer ones wait for their receive "
     "and are copied once",
     MR_TOPIC_MESSAGES, AT_INIT},
    {"MRMPI_SINGLE_COPY", NULL, FIELD(single_copy), BOOL, "yes", 0, 1, "",
     "inside a host, let one process copy large messages directly from the memory of the other. no: both copy, "
     "through shared memory. It needs no setting where the system forbids it: that is noticed",
     MR_TOPIC_MESSAGES, AT_INIT},
    {"MRMPI_SHM_COPY", NULL, FIELD(shm_copy), STRING, "auto", 0, 0, "",
     "inside a host, who copies large messages: push, both ranks, through shared memory; read, the receiver, from the "
     "sender's memory; split, both at once, each a part; auto: what takes the least time on this machine, which is "
     "found out while the program runs, and shown by MRMPI_STATS. read and split need MRMPI_SINGLE_COPY",
     MR_TOPIC_MESSAGES, AT_INIT},
    {"MRMPI_SHM_STREAM", NULL, FIELD(shm_stream), INT, "-1", -1, 1, "",
     "inside a host, 1: what is copied for another rank to read passes the cache of this core; 0: it does not; -1: "
     "where that is faster, which is seen by the time that copies take, or round trips of 1 to 4 KiB",
     MR_TOPIC_MESSAGES, AT_INIT},
    {"MRMPI_RNDV", NULL, FIELD(rndv), STRING, "auto", 0, 0, "",
     "how large messages move between hosts: write, the sender writes into the receiver's memory; read, the receiver "
     "reads the sender's, which saves an answer and goes on while the sender computes; auto: read, but write on "
     "adapters of 10 Gbit/s or less",
     MR_TOPIC_MESSAGES, AT_INIT},
    {"MRMPI_MODEL", NULL, FIELD(model), STRING, "", 0, 0, "",
     "costs by which the library chooses between protocols, as copy_mbps=8000,trip_ns=3000; @ and the name of a file: "
     "the costs are there; empty: the defaults. mrrun --explain shows the costs, and the times of messages that follow",
     MR_TOPIC_MESSAGES, AT_INIT},
    {"MRMPI_UD_RNDV", NULL, FIELD(ud_rndv), STRING, "zcopy", 0, 0, "",
     "how large messages move between ranks that have no connection, but datagrams (MRMPI_LINKS): zcopy, the adapter "
     "puts them directly into the receiver's memory; copy, in packets that the processor copies",
     MR_TOPIC_MESSAGES, AT_INIT},
    {"MRMPI_UNSENT_MAX", NULL, FIELD(unsent_max), INT, "64", 1, 65536, "packets",
     "so many packets to one rank may wait here until the network takes them. Beyond it blocking sends wait, and "
     "nonblocking ones leave their data in the program's buffer. It bounds memory when a program sends faster than "
     "the network carries",
     MR_TOPIC_MESSAGES, ANYTIME},
    {"MRMPI_UNEXPECTED_MAX", NULL, FIELD(unexpected_max), SIZE, "4M", 0, 64 * GIB, "bytes",
     "memory for short messages of one other rank that came before the program asked for them, 512 bytes more than "
     "their data for each. When it is full that rank announces its short messages like large ones until some are "
     "received. More helps receivers that are late; 0: all are announced",
     MR_TOPIC_MESSAGES, AT_INIT},
    {"MRMPI_UNEXPECTED_TOTAL", NULL, FIELD(unexpected_total), SIZE, "256M", 0, 1024 * GIB, "bytes",
     "the same for all other ranks together, in equal parts of at least 256 KiB: what a rank has of each sender is "
     "the smaller of both",
     MR_TOPIC_MESSAGES, AT_INIT},
    {"MRMPI_DEVICES", NULL, FIELD(devices), STRING, "", 0, 0, "",
     "adapters and ports to use, separated by commas, as mlx5_0:1,mlx5_1; without a number all ports of the adapter. "
     "Empty: all ports that are up",
     MR_TOPIC_RAILS, AT_INIT},
    {"MRMPI_ROCE_GID", NULL, FIELD(roce_gid), STRING, "", 0, 0, "",
     "on RoCE (Ethernet), which of a port's addresses to use: an index of its GID table, or a type as roce-v2/ipv6. "
     "Empty: RoCE version 2 is preferred, then IPv4",
     MR_TOPIC_RAILS, AT_INIT},
    {"MRMPI_PKEY", NULL, FIELD(pkey), INT, "0", 0, 65535, "",
     "the partition (P_Key, as 0x8011; its highest bit does not matter) that two hosts talk in, if both are members of "
     "it and one at least is a full member. Else, and with 0, it is the default partition if both can talk in that, or "
     "the common one with the lowest number. Each pair of ports has its own; mrrun --explain shows it. For InfiniBand",
     MR_TOPIC_RAILS, AT_INIT},
    {"MRMPI_RAILS_MAX", NULL, FIELD(rails_max), INT, "0", 0, 64, "rails",
     "use at most so many ports (rails); 0: all. 1 shows what a program gains by several", MR_TOPIC_RAILS, AT_INIT},
    {"MRMPI_PAIRS", NULL, FIELD(pairs), STRING, "matched", 0, 0, "",
     "which ports of two hosts talk to each other, within each subnet: matched, the first with the first, the second "
     "with the second and so on, or by their rates if that carries more; all, each with each, if both ranks say so, "
     "which takes more connections. Where none of these leads to a rank any more, any other two that reach each other "
     "are taken",
     MR_TOPIC_RAILS, AT_INIT},
    {"MRMPI_LINKS", NULL, FIELD(links), STRING, "auto", 0, 0, "",
     "kinds of links to use between hosts, the preferred one first: rc, reliable connections; uc, unreliable ones; "
     "ud, datagrams, which need no memory for each peer; ring, reliable connections whose short messages are written "
     "into memory that the receiver watches, for the lowest latency. auto: rc; in jobs with more than MRMPI_RC_PEERS "
     "ranks on other hosts rc,ud",
     MR_TOPIC_RAILS, AT_INIT},
    {"MRMPI_RULES", NULL, FIELD(rules), STRING, "", 0, 0, "",
     "for experts: which kind of link carries which messages, as \"eager size<=2K count>=16: rc,ud\", or @ and the "
     "name of a file of such rules; mrrun --explain shows what they come to. Empty: MRMPI_LINKS alone decides",
     MR_TOPIC_RAILS, AT_INIT},
    {"MRMPI_RC_PEERS", NULL, FIELD(rc_peers), INT, "0", 0, 1000000, "ranks",
     "with rc,ud or uc,ud in MRMPI_LINKS: so many ranks of other hosts have a connection at the same time, those "
     "with which most is exchanged; the others are reached by datagrams. More takes memory here, and in the adapter, "
     "which is slower with more than it can keep at hand. 0: what it keeps (ConnectX-2 and older 128, ConnectX-3 1024, "
     "others 16384), divided by the ranks of the fullest host",
     MR_TOPIC_RAILS, AT_INIT},
    {"MRMPI_RC_AFTER", NULL, FIELD(rc_after), INT, "0", 0, 1000000, "packets",
     "the same: a rank gets its connection after so many packets to it and from it, or with the first large message. "
     "0: when the first message goes there",
     MR_TOPIC_RAILS, AT_INIT},
    {"MRMPI_RING_PEERS", NULL, FIELD(ring_peers), INT, "8", 0, 1000000, "ranks",
     "with ring in MRMPI_LINKS: so many ranks may write into rings here at the same time, those with which most is "
     "exchanged. Each ring takes MRMPI_RING_SLOTS times MRMPI_RING_SIZE of memory and is read by every poll",
     MR_TOPIC_RAILS, AT_INIT},
    {"MRMPI_RING_AFTER", NULL, FIELD(ring_after), INT, "64", 0, 1000000, "packets",
     "the same: a rank gets a ring after so many packets to it and from it; 0: when it connects", MR_TOPIC_RAILS,
     AT_INIT},
    {"MRMPI_RING_SLOTS", NULL, FIELD(ring_slots), INT, "32", 1, 4096, "slots",
     "packets that a ring holds; cut to a power of two. More lets a sender go further ahead of a receiver that is "
     "busy",
     MR_TOPIC_RAILS, AT_INIT},
    {"MRMPI_RING_SIZE", NULL, FIELD(ring_size), SIZE, "0", 0, 64 * KIB, "bytes",
     "longest packet that goes by a ring; longer ones go by the connection. 0: MRMPI_EAGER_MAX, but with "
     "MRMPI_RING_DESIGN basic or piggyback 2 KiB, with pipelined 16 KiB",
     MR_TOPIC_RAILS, AT_INIT},
    {"MRMPI_RING_DESIGN", NULL, FIELD(ring_design), STRING, "zerocopy", 0, 0, "",
     "how messages go by rings, for comparisons. basic: a write for the packet, one for the count of packets, and "
     "one back for each that was read; piggyback: the packet shows its own arrival, and the way back is spared; "
     "pipelined: the same in pieces of 16 KiB, if MRMPI_EAGER_MAX is no less; zerocopy: as piggyback, but large "
     "messages go by RDMA, not by the ring",
     MR_TOPIC_RAILS, AT_INIT},
    {"MRMPI_RELIABLE", NULL, FIELD(reliable), STRING, "auto", 0, 0, "",
     "which packets the library itself acknowledges and repeats: auto, those over links that may lose them (uc, ud); "
     "yes, all; no, none, so that a lost packet stops the program: for measurements only",
     MR_TOPIC_RAILS, AT_INIT},
    {"MRMPI_PATHS", NULL, FIELD(paths), INT, "0", 0, 8, "paths",
     "paths through the subnet between each pair of ports: used as far as the subnet manager gives ports several LIDs "
     "(LMC). More spreads messages over cables between switches. 0: one, and for large messages all others that share "
     "no cable, as far as fabricd knows any and allows them; those lead to peers, too, that the first one does not "
     "reach any more",
     MR_TOPIC_RAILS, AT_INIT},
    {"MRMPI_STRIPE_MIN", NULL, FIELD(stripe_min), SIZE, "16K", 1, GIB, "bytes",
     "messages shorter than this go over one rail; longer ones are cut and go over several at a time", MR_TOPIC_RAILS,
     ANYTIME},
    {"MRMPI_POLICY_SMALL", NULL, FIELD(policy_small), STRING, "auto", 0, 0, "",
     "which rail each small message takes: soonest, fair, round-robin, weighted-round-robin, window, binding, near "
     "(libmrmpi(7), SCHEDULING POLICIES, explains them); auto: as fabricd says, else fair, which evens out what each "
     "rail carries",
     MR_TOPIC_RAILS, AT_INIT},
    {"MRMPI_POLICY_LARGE", NULL, FIELD(policy_large), STRING, "auto", 0, 0, "",
     "how large messages use rails: cut into stripes (even, weighted, adaptive, eq3, eq4), or each whole on one rail "
     "(all of MRMPI_POLICY_SMALL but near); auto: as fabricd says, else adaptive, which cuts by the rates that rails "
     "have shown",
     MR_TOPIC_RAILS, AT_INIT},
    {"MRMPI_SRQ_DEPTH", NULL, FIELD(srq_depth), INT, "512", 16, 32768, "entries",
     "receive buffers posted for each port, of MRMPI_EAGER_MAX each. More helps when many ranks send to one at a "
     "time, and takes memory",
     MR_TOPIC_RAILS, AT_INIT},
    {"MRMPI_SQ_DEPTH", NULL, FIELD(sq_depth), INT, "64", 4, 4096, "entries",
     "sends that the adapter may have queued on one connection; more takes memory for each connection", MR_TOPIC_RAILS,
     AT_INIT},
    {"MRMPI_UD_POOL", NULL, FIELD(ud_pool), INT, "16", 0, 1024, "queue pairs",
     "queue pairs of each port for large messages that come as datagrams directly into memory (MRMPI_UD_RNDV); made "
     "when they are needed. So many such messages come at a time, others wait. 0: they go in packets",
     MR_TOPIC_RAILS, AT_INIT},
    {"MRMPI_UD_POOL_DEPTH", NULL, FIELD(ud_pool_depth), INT, "256", 1, 16384, "entries",
     "receive buffers of each of them: so many datagrams may a sender have under way before it hears again",
     MR_TOPIC_RAILS, AT_INIT},
    {"MRMPI_REG_CACHE_MAX", NULL, FIELD(reg_cache_max), SIZE, "4G", 0, 1024 * GIB, "bytes",
     "memory of large messages that stays registered with the adapter, since programs use the same buffers again. It "
     "stays pinned: less leaves more to the system, and costs time if buffers are many. 0: none",
     MR_TOPIC_RAILS, AT_INIT},
    {"MRMPI_REG_CACHE_ENTRIES", NULL, FIELD(reg_cache_entries), INT, "0", 0, 1 << 20, "buffers",
     "number of buffers that stay registered, at most; 0: half of what the adapter has room for, shared by the ranks "
     "of the host, but 64 at least and 16384 at most",
     MR_TOPIC_RAILS, AT_INIT},
    {"MRMPI_ODP", NULL, FIELD(odp), STRING, "auto", 0, 0, "",
     "on-demand paging: the adapter reaches large buffers without pinning them. yes, wherever it can; no; auto: for "
     "buffers that could not stay registered, and those that cannot be pinned",
     MR_TOPIC_RAILS, AT_INIT},
    {"MRMPI_CONNECT_TIMEOUT_MS", NULL, FIELD(connect_timeout_ms), INT, "100", 1, 60000, "ms",
     "a request to connect that is not answered is repeated after this time at the latest; sooner once it is known "
     "how fast peers answer",
     MR_TOPIC_CONNECTIONS, AT_INIT},
    {"MRMPI_CONNECT_RETRIES", NULL, FIELD(connect_retries), INT, "0", 0, 10000, "times",
     "a peer that has not answered so many repeated requests to connect is lost; 0: never for that reason, since a "
     "program that computes does not answer",
     MR_TOPIC_CONNECTIONS, AT_INIT},
    {"MRMPI_PATIENCE", NULL, FIELD(patience), INT, "60", 0, 86400, "s",
     "a peer to which no cable leads any more is waited for so long; then it is lost, and operations with it fail. "
     "Less ends jobs sooner; more outlives longer outages",
     MR_TOPIC_CONNECTIONS, AT_INIT},
    {"MRMPI_RC_TIMEOUT", NULL, FIELD(rc_timeout), INT, "18", 0, 31, "",
     "how long the adapter waits for an acknowledgement before it repeats a packet: 4.096 us times 2 to this power, "
     "so 18 is a second. Less notices a dead cable sooner but mistakes a congested one for it; 0: for ever",
     MR_TOPIC_CONNECTIONS, AT_INIT},
    {"MRMPI_RC_RETRY", NULL, FIELD(rc_retry), INT, "6", 0, 6, "times",
     "so often the adapter repeats a packet before the subchannel counts as broken. 7 is not allowed, since it means "
     "for ever on some adapters",
     MR_TOPIC_CONNECTIONS, AT_INIT},
    {"MRMPI_RNR_RETRY", NULL, FIELD(rnr_retry), INT, "7", 0, 7, "times",
     "so often the adapter tries again when the receiver has no buffer; 7: for ever, as a receiver that computes is "
     "only late",
     MR_TOPIC_CONNECTIONS, AT_INIT},
    {"MRMPI_SPIN_US", NULL, FIELD(spin_us), INT, "1000", 0, 1000000, "us",
     "a rank that waits polls so long before it lets other programs have the processor; where they are seen to "
     "compute on it, 20 us at most, 100 with a network, and then sleeps. More lowers latency; less helps what shares "
     "the cores",
     MR_TOPIC_MESSAGES, ANYTIME},
    {"MRMPI_OVERSUBSCRIBED", NULL, FIELD(oversubscribed), INT, "-1", -1, 1, "",
     "1: the host has more ranks than cores, so ranks that wait soon sleep; 0: it has not, they poll first; -1: find "
     "out",
     MR_TOPIC_MESSAGES, AT_INIT},
    {"MRMPI_COLL", NULL, FIELD(coll), STRING, "", 0, 0, "",
     "algorithms that collective operations take instead of the chosen ones, as allreduce:ring,bcast:binomial; equal "
     "on all ranks. For comparisons",
     MR_TOPIC_MESSAGES, AT_INIT},
    {"MRMPI_COLL_TABLE", NULL, FIELD(coll_table), STRING, "", 0, 0, "",
     "a file with algorithms that collective operations take on this machine, by size and number of ranks; equal on "
     "all ranks",
     MR_TOPIC_MESSAGES, AT_INIT},
    {"MRMPI_ASYNC_PROGRESS", NULL, FIELD(async_progress), BOOL, "no", 0, 1, "",
     "let a thread of each rank do what others ask of its windows while the program computes, and no other thread is "
     "in an MPI function. It polls every 20 to 500 us, and each MPI function takes a lock. no: that waits for the "
     "next MPI function, but for what adapters or other processes of the node do by "
     "themselves (see One-sided communication)",
     MR_TOPIC_JOB, AT_INIT},
    {"MRMPI_CHECK_ARGS", NULL, FIELD(check_args), BOOL, "yes", 0, 1, "",
     "check the arguments of MPI functions. no saves a little time in each call, and wrong arguments are not "
     "reported",
     MR_TOPIC_JOB, ANYTIME},
    {"MRMPI_FABRICD_SOCKET", NULL, FIELD(fabricd_socket), STRING, "/run/fabricd/fabricd.sock", 0, 0, "",
     "socket of this host's fabricd; %h is the host's name", MR_TOPIC_JOB, AT_INIT},
    {"MRMPI_JOBID", "SLURM_JOB_ID", FIELD(job_id), STRING, "", 0, 0, "",
     "the job's name for fabricd, which knows the job's class by it", MR_TOPIC_JOB, AT_INIT},
    {"MRMPI_LAUNCHER", NULL, FIELD(launcher), STRING, "auto", 0, 0, "",
     "how to talk to the program that started the job: pmix, pmi2, pmi1; none: do not, the process runs alone; auto: "
     "as the environment says",
     MR_TOPIC_JOB, AT_INIT},
    {"MRMPI_LAUNCHER_TIMEOUT_S", NULL, FIELD(launcher_timeout_s), INT, "120", 0, 86400, "s",
     "how long the launcher (PMIx or PMI) may take to answer; 0: for ever", MR_TOPIC_JOB, AT_INIT},
    {"MRMPI_LOG_LEVEL", NULL, FIELD(log_level), INT, "1", 0, INT_MAX, "",
     "0 errors, 1 warnings, 2 information, from 3 debugging", MR_TOPIC_JOB, ANYTIME},
    {"MRMPI_STATS", NULL, FIELD(stats), BOOL, "no", 0, 1, "", "print the counters at MPI_Finalize", MR_TOPIC_JOB,
     ANYTIME},
    {"MRMPI_RECORD", NULL, FIELD(record), STRING, "", 0, 0, "",
     "file in which a rank records the figures of its rails for mrrun, which sets this; %r is the rank; empty: none",
     MR_TOPIC_JOB, AT_INIT},
    {"MRMPI_RECORD_EVENTS", NULL, FIELD(record_events), INT, "0", 0, 16 * 1024 * 1024, "events",
     "the last so many events of its rails that a rank records there, 48 bytes each; 0: none", MR_TOPIC_JOB, AT_INIT},
    {"MRMPI_INQUIRY", NULL, FIELD(inquiry), STRING, "", 0, 0, "",
     "directory in which a rank that waits tells mrrun, which sets this, what it waits for; empty: it does not",
     MR_TOPIC_JOB, AT_INIT},
    {"MRMPI_PARENT", NULL, FIELD(parent), STRING, "", 0, 0, "",
     "port of the program that started the job, to which ranks connect; MPI_Comm_spawn sets this; empty: none",
     MR_TOPIC_JOB, AT_INIT},
    {"MRMPI_RECOVER", NULL, FIELD(recover), BOOL, "no", 0, 1, "",
     "ranks that die do not end the job: mrrun --recover, which sets this, tells the others", MR_TOPIC_JOB, AT_INIT},
    {"MRMPI_LEAKS", NULL, FIELD(leaks), BOOL, "no", 0, 1, "", "tell at MPI_Finalize what was not freed", MR_TOPIC_JOB,
     ANYTIME},
    {"MRMPI_CHECK", NULL, FIELD(check), BOOL, "no", 0, 1, "",
     "tell in one line at MPI_Finalize how many objects of each kind were not freed, and how many messages nobody "
     "received; MRMPI_LEAKS lists them",
     MR_TOPIC_JOB, ANYTIME},
};

const size_t mr_config_num_rows = sizeof(mr_config_rows) / sizeof(mr_config_rows[0]);
