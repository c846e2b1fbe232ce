# SPDX-License-Identifier: BSD-3-Clause
# Unit tests of the library's rooms. Each owner of a room appends the tests of it.

# pt2pt, channel, base: without a launcher; fake_world stands for launch and core
FAKE_WORLD_SRCS := tests/libmrmpi/fake_world.c libmrmpi/channel/vc.c libmrmpi/channel/reorder.c libmrmpi/channel/channel.c libmrmpi/channel/self.c \
    libmrmpi/channel/shm.c libmrmpi/channel/shm_recv.c libmrmpi/channel/shm_sleep.c libmrmpi/channel/shm_segment.c libmrmpi/channel/shm_cores.c libmrmpi/channel/cma.c libmrmpi/channel/stream.c libmrmpi/channel/stream_rails.c libmrmpi/channel/stream_ring.c libmrmpi/channel/stream_out.c libmrmpi/channel/stream_listen.c libmrmpi/channel/job_ring.c libmrmpi/core/error.c libmrmpi/core/group.c libmrmpi/launch/ends.c libmrmpi/launch/guests.c \
    $(wildcard libmrmpi/base/*.c) $(wildcard libmrmpi/p2p/match/*.c) $(wildcard libmrmpi/p2p/choice/*.c) $(wildcard libmrmpi/p2p/*.c) $(wildcard libmrmpi/p2p/fault/*.c) $(wildcard libmrmpi/p2p/rndv/*.c) $(wildcard libmrmpi/p2p/payload/*.c) $(wildcard libmrmpi/p2p/request/*.c) $(wildcard libmrmpi/p2p/progress/*.c) $(wildcard libmrmpi/p2p/derived/*.c)

# the cost model, whose file reads a setting
MODEL_SRCS := $(addprefix libmrmpi/base/,model.c config.c config_table.c log.c stats.c)
$(call unit_test,test_model,$(MODEL_SRCS))
$(call unit_test,test_match,libmrmpi/p2p/match/match.c)
$(call unit_test,test_era,libmrmpi/p2p/fault/era.c)
$(call unit_test,test_credit)
$(call unit_test,test_batch,libmrmpi/p2p/choice/batch.c $(MODEL_SRCS))
$(call unit_test,test_exchange)
$(call unit_test,test_answers)
$(call unit_test,test_burst,libmrmpi/p2p/choice/burst.c libmrmpi/p2p/choice/trial.c $(MODEL_SRCS))
$(call unit_test,test_trial,libmrmpi/p2p/choice/trial.c)
$(call unit_test,test_copy_mode,libmrmpi/p2p/choice/copy_mode.c)
$(call unit_test,test_learn)
$(call unit_test,test_claim)
$(call unit_test,test_config,libmrmpi/base/config.c libmrmpi/base/config_table.c libmrmpi/base/log.c)
$(call unit_test,test_shm_ring)
$(call unit_test,test_job_ring,libmrmpi/channel/job_ring.c)
$(call unit_test,test_shm_sleep,libmrmpi/channel/shm_sleep.c libmrmpi/base/clock.c libmrmpi/base/lock.c)
$(call unit_test,test_shm_cores,libmrmpi/channel/shm_cores.c)
$(call unit_test,test_shm_answer)
$(call unit_test,test_shm_pool,libmrmpi/base/copier.c libmrmpi/base/clock.c $(wildcard libmrmpi/base/copy*.c))
$(call unit_test,test_lock,libmrmpi/base/lock.c)
$(call unit_test,test_pt2pt,$(FAKE_WORLD_SRCS))
$(call unit_test,test_reserve,$(FAKE_WORLD_SRCS))

# rail, verbs, fabric: the pure parts, and the client of fabricd against a server of the test's own
$(call unit_test,test_wire)
$(call unit_test,test_reorder,libmrmpi/channel/reorder.c libmrmpi/base/retained.c)
$(call unit_test,test_vc,libmrmpi/channel/vc.c libmrmpi/channel/reorder.c \
    $(addprefix libmrmpi/base/,retained.c config.c config_table.c log.c stats.c))
$(call unit_test,test_sched,libmrmpi/conn/route/sched.c libmrmpi/conn/route/policy.c libmrmpi/net/stripe/filter.c)
$(call unit_test,test_policy,$(addprefix libmrmpi/conn/route/,sched.c policy.c) libmrmpi/net/stripe/feedback.c)
$(call unit_test,test_rules,libmrmpi/conn/route/rules.c libmrmpi/verbs/link/kinds.c)
$(call unit_test,test_far,$(addprefix libmrmpi/rma/winlock/,part.c taker.c far.c) \
    $(addprefix libmrmpi/base/,stats.c log.c config.c config_table.c))
$(call unit_test,test_winlock,$(addprefix libmrmpi/rma/winlock/,part.c taker.c))
$(call unit_test,test_quota)
RAIL_TEST_BASE := $(addprefix libmrmpi/base/,config.c config_table.c log.c stats.c)
$(call unit_test,test_epoch,libmrmpi/conn/epoch.c $(addprefix libmrmpi/conn/peer/,levels.c subs.c) \
    $(addprefix libmrmpi/conn/route/,pair.c policy.c sched.c) $(RAIL_TEST_BASE))
$(call unit_test,test_subs,$(addprefix libmrmpi/conn/peer/,subs.c links.c levels.c) libmrmpi/conn/epoch.c \
    $(addprefix libmrmpi/conn/route/,pair.c policy.c sched.c) libmrmpi/conn/reliable/window.c $(RAIL_TEST_BASE))
$(call unit_test,test_budget,libmrmpi/conn/budget.c libmrmpi/conn/ration.c libmrmpi/verbs/link/kinds.c $(RAIL_TEST_BASE))
# peer: over links of the tests' own (fake_peer.h)
PARTITIONS := libmrmpi/conn/peer/partitions.c libmrmpi/verbs/pkey.c
$(call unit_test,test_recovery,libmrmpi/conn/recovery.c libmrmpi/conn/ways.c libmrmpi/conn/route/trust.c $(PARTITIONS) \
    libmrmpi/conn/reliable/window.c libmrmpi/base/record.c $(RAIL_TEST_BASE))
$(call unit_test,test_handshake,libmrmpi/conn/route/trust.c $(PARTITIONS) \
    $(addprefix libmrmpi/conn/,handshake.c connect.c ways.c) libmrmpi/conn/cm/conn.c libmrmpi/conn/cm/message.c \
    libmrmpi/conn/reliable/window.c $(RAIL_TEST_BASE))
$(call unit_test,test_keepalive,$(addprefix libmrmpi/conn/,keepalive.c ways.c route/trust.c) $(PARTITIONS) $(RAIL_TEST_BASE))
$(call unit_test,test_steer,libmrmpi/conn/peer/steer.c libmrmpi/conn/route/rules.c libmrmpi/verbs/link/kinds.c \
    $(RAIL_TEST_BASE))
$(call unit_test,test_spread,libmrmpi/conn/peer/spread.c libmrmpi/conn/route/policy.c $(RAIL_TEST_BASE))
$(call unit_test,test_guard,libmrmpi/conn/peer/guard.c $(RAIL_TEST_BASE))
$(call unit_test,test_silence,libmrmpi/conn/silence.c libmrmpi/conn/ways.c libmrmpi/conn/route/trust.c $(PARTITIONS) \
    $(RAIL_TEST_BASE))
$(call unit_test,test_probe,libmrmpi/conn/peer/probe.c $(RAIL_TEST_BASE))
$(call unit_test,test_addresses,libmrmpi/conn/peer/addresses.c libmrmpi/conn/route/address.c libmrmpi/verbs/link/kinds.c \
    $(RAIL_TEST_BASE))
$(call unit_test,test_where,libmrmpi/conn/peer/where.c $(PARTITIONS) $(RAIL_TEST_BASE))
$(call unit_test,test_rely,libmrmpi/net/rely.c libmrmpi/net/turn.c libmrmpi/conn/peer/lists.c libmrmpi/conn/route/address.c \
    libmrmpi/conn/route/sched.c libmrmpi/conn/route/policy.c $(addprefix libmrmpi/conn/reliable/,window.c ack.c) libmrmpi/base/record.c \
    $(RAIL_TEST_BASE))
$(call unit_test,test_address,libmrmpi/conn/route/address.c)
$(call unit_test,test_blocks,libmrmpi/net/stripe/blocks.c)
$(call unit_test,test_repair,libmrmpi/net/zcopy/repair.c)
$(call unit_test,test_pair,libmrmpi/conn/route/pair.c libmrmpi/conn/route/policy.c)
$(call unit_test,test_place,libmrmpi/coll/place.c)
$(call unit_test,test_node_ring)
$(call unit_test,test_memfile,libmrmpi/base/memfile.c)
$(call unit_test,test_bucket)
$(call unit_test,test_trust,libmrmpi/conn/route/trust.c)
$(call unit_test,test_ahead,libmrmpi/conn/route/ahead.c)
$(call unit_test,test_pace,libmrmpi/conn/route/pace.c)
$(call unit_test,test_grant,libmrmpi/net/grant.c libmrmpi/conn/route/ahead.c libmrmpi/conn/route/pace.c $(RAIL_TEST_BASE))
$(call unit_test,test_adapt,libmrmpi/net/stripe/adapt.c libmrmpi/conn/route/sched.c libmrmpi/conn/route/policy.c)
$(call unit_test,test_regcache,libmrmpi/verbs/memory/regcache.c)
$(call unit_test,test_select,$(addprefix libmrmpi/verbs/,select.c contexts.c) $(RAIL_TEST_BASE),libibverbs)
$(call unit_test,test_device,$(addprefix libmrmpi/verbs/,cq.c later.c device.c gid.c partition.c pkey.c port.c select.c) \
    $(wildcard libmrmpi/base/*.c),libibverbs)
$(call unit_test,test_cq,$(addprefix libmrmpi/verbs/,cq.c later.c) $(wildcard libmrmpi/base/*.c),libibverbs)
$(call unit_test,test_rx,$(addprefix libmrmpi/verbs/,cq.c later.c rx.c) $(wildcard libmrmpi/base/*.c),libibverbs)
$(call unit_test,test_costs,libmrmpi/verbs/costs.c $(MODEL_SRCS),libibverbs)
$(call unit_test,test_retire,$(addprefix libmrmpi/verbs/,cq.c later.c post.c qp.c) $(wildcard libmrmpi/base/*.c),libibverbs)
$(call unit_test,test_gid,libmrmpi/verbs/gid.c)
$(call unit_test,test_pkey,libmrmpi/verbs/pkey.c)
$(call unit_test,test_connect,libmrmpi/conn/cm/conn.c libmrmpi/conn/cm/message.c)
$(call unit_test,test_fabric_client,libmrmpi/conn/fabric/client.c)

# reliable: pure; test_reliable joins two ends by a network that it makes up
$(call unit_test,test_window,libmrmpi/conn/reliable/window.c)
$(call unit_test,test_reliable,libmrmpi/conn/reliable/window.c libmrmpi/conn/reliable/ack.c libmrmpi/channel/reorder.c \
    libmrmpi/base/retained.c)
$(call unit_test,test_rtt)
$(call unit_test,test_ack,libmrmpi/conn/reliable/ack.c)

# link: the pure parts, and what the library has of each kind
$(call unit_test,test_assembly,libmrmpi/verbs/link/assembly.c)
$(call unit_test,test_packet,libmrmpi/verbs/link/packet.c $(RAIL_TEST_BASE))
$(call unit_test,test_slots)
$(call unit_test,test_kinds,libmrmpi/verbs/link/kinds.c)
$(call unit_test,test_link_ops)
tests/libmrmpi/test_link_ops_DEPS := libmrmpi.so

# The calls that unmap memory, led to ours: with a sanitizer the allocator is another one, and there is nothing to test.
ifeq ($(SAN),)
$(call unit_test,test_memory,$(addprefix libmrmpi/verbs/memory/,calls.c patch.c))
CFLAGS.tests/libmrmpi/test_memory.c := -fno-builtin
endif

# Large messages over links of the test's own
$(call unit_test,test_bulk,$(addprefix libmrmpi/net/bulk/,bulk.c advertise.c) \
    $(addprefix libmrmpi/net/stripe/,keys.c transfer.c renew.c renewed.c wlist.c stripe.c moves.c adapt.c feedback.c filter.c) \
    $(addprefix libmrmpi/conn/route/,ahead.c pace.c sched.c policy.c) \
    $(addprefix libmrmpi/verbs/memory/,regcache.c use.c) $(addprefix libmrmpi/base/,config.c config_table.c log.c model.c record.c stats.c))

# The same over links, pools and a peer of fake_bulk.c, protocol by protocol
FAKE_BULK := tests/libmrmpi/fake_bulk.c libmrmpi/net/bulk/bulk.c \
    $(addprefix libmrmpi/net/stripe/,keys.c transfer.c renew.c renewed.c wlist.c stripe.c moves.c track.c adapt.c feedback.c filter.c blocks.c) \
    $(addprefix libmrmpi/net/zcopy/,zcopy_plan.c zcopy_wait.c zcopy_settle.c zcopy_in.c zcopy_serve.c zcopy_out.c repair.c) \
    $(addprefix libmrmpi/conn/route/,ahead.c pace.c sched.c policy.c) \
    $(addprefix libmrmpi/base/,config.c config_table.c log.c model.c record.c stats.c)
$(call unit_test,test_track,$(FAKE_BULK))
$(call unit_test,test_moves,$(FAKE_BULK))
$(call unit_test,test_zcopy_in,$(FAKE_BULK))
$(call unit_test,test_zcopy_out,$(FAKE_BULK))

$(call unit_test,test_renew,$(addprefix libmrmpi/net/stripe/,renew.c renewed.c) \
    $(addprefix libmrmpi/base/,config.c config_table.c log.c model.c record.c stats.c))

# Short writes to windows, and words that adapters change, over the same
$(call unit_test,test_atomic,$(FAKE_BULK) libmrmpi/net/bulk/atomic.c)
$(call unit_test,test_writer,$(FAKE_BULK) libmrmpi/net/bulk/writer.c)

# The end of a job, with channels, a launcher and a pt2pt/ of the test's own
$(call unit_test,test_linger,libmrmpi/api/init/init.c libmrmpi/core/error.c libmrmpi/channel/vc.c \
    libmrmpi/channel/channel.c libmrmpi/channel/reorder.c $(wildcard libmrmpi/base/*.c))

# Not a unit test: run under mrrun on simulated hosts by rails.sh
TESTPROGS += tests/libmrmpi/vc_probe
tests/libmrmpi/vc_probe_SRCS := tests/libmrmpi/vc_probe.c
tests/libmrmpi/vc_probe_DEPS := libmrmpi.so

# The same, by tests/mpi/scale.sh. It counts what is allocated, which a sanitizer does, too.
ifeq ($(SAN),)
TESTPROGS += tests/libmrmpi/footprint
tests/libmrmpi/footprint_SRCS := tests/libmrmpi/footprint.c
tests/libmrmpi/footprint_DEPS := libmrmpi.so
endif

# The same, by pool.sh
TESTPROGS += tests/libmrmpi/pool_probe
tests/libmrmpi/pool_probe_SRCS := tests/libmrmpi/pool_probe.c
tests/libmrmpi/pool_probe_DEPS := libmrmpi.so

# Programs of bench/ whose calls are counted, by instructions.sh: with the trap flag of x86
ifneq ($(filter x86_64%,$(shell $(CC) -dumpmachine)),)
define counted_program
TESTPROGS += tests/libmrmpi/counted_$(1)
tests/libmrmpi/counted_$(1)_SRCS := bench/$(1).c tests/libmrmpi/instructions.c
tests/libmrmpi/counted_$(1)_DEPS := libmpi.so.12
CFLAGS.bench/$(1).c := -Ilibmrmpi/include
TESTPROGS += tests/libmrmpi/standard/counted_$(1)
tests/libmrmpi/standard/counted_$(1)_VARIANT := standard
tests/libmrmpi/standard/counted_$(1)_SRCS := bench/$(1).c tests/libmrmpi/instructions.c
tests/libmrmpi/standard/counted_$(1)_DEPS := libmpi_abi.so.1
endef
$(foreach p,pair rma calls,$(eval $(call counted_program,$(p))))
CFLAGS.tests/libmrmpi/instructions.c := -Ilibmrmpi/include
endif

# core, coll, api: objects and handles, without a network
CORE_TEST_SRCS := $(addprefix libmrmpi/core/,type.c type_make.c type_array.c pack.c move.c layout.c op.c $(foreach l,base avx2 avx512,op_$(l).c move_$(l).c) group.c topo.c dims.c error.c)
$(call unit_test,test_type,$(CORE_TEST_SRCS))
$(call unit_test,test_move,$(addprefix libmrmpi/core/,move.c $(foreach l,base avx2 avx512,move_$(l).c)))
$(call unit_test,test_pieces,$(addprefix libmrmpi/core/pieces/,pieces.c section.c) $(CORE_TEST_SRCS))
$(call unit_test,test_tiling,libmrmpi/io/tiling.c $(CORE_TEST_SRCS))
$(call unit_test,test_datarep,libmrmpi/io/datarep.c libmrmpi/core/external.c $(CORE_TEST_SRCS))
$(call unit_test,test_disk,libmrmpi/io/disk.c $(CORE_TEST_SRCS))
$(call unit_test,test_op,$(CORE_TEST_SRCS))
$(call unit_test,test_group,$(CORE_TEST_SRCS))
$(call unit_test,test_handle,libmrmpi/api/handle.c libmrmpi/api/abi_mpich.c $(addprefix libmrmpi/core/,info.c errhandler.c) \
    $(CORE_TEST_SRCS))
CFLAGS.tests/libmrmpi/test_handle.c := -Ilibmrmpi/include

TESTPROGS += tests/libmrmpi/forbid
tests/libmrmpi/forbid_SRCS := tests/libmrmpi/forbid.c
SCRIPT_TESTS += tests/libmrmpi/shm.sh tests/libmrmpi/container.sh tests/libmrmpi/waiting.sh tests/libmrmpi/rails.sh tests/libmrmpi/many_rails.sh tests/libmrmpi/pairs.sh tests/libmrmpi/unequal.sh tests/libmrmpi/adaptive.sh tests/libmrmpi/loads.sh tests/libmrmpi/policies.sh tests/libmrmpi/pool.sh tests/libmrmpi/toy.sh tests/libmrmpi/instructions.sh
LONG_TESTS += tests/libmrmpi/fuzz.sh tests/libmrmpi/pairs.sh:--all tests/libmrmpi/loads.sh:--all tests/libmrmpi/instructions.sh:--all
