# SPDX-License-Identifier: BSD-3-Clause
# Unit tests of the library's rooms. Each owner of a room appends the tests of it.

# pt2pt, channel, base: without a launcher; fake_world stands for launch and core
FAKE_WORLD_SRCS := tests/libmrmpi/fake_world.c libmrmpi/channel/vc/vc.c libmrmpi/channel/vc/reorder.c libmrmpi/channel/channel.c libmrmpi/channel/self.c \
    libmrmpi/channel/shm.c libmrmpi/channel/shm_recv.c libmrmpi/channel/shm_sleep.c libmrmpi/channel/shm_segment.c libmrmpi/channel/shm_cores.c libmrmpi/channel/shm_copy.c libmrmpi/channel/cma.c libmrmpi/core/error.c \
    $(wildcard libmrmpi/base/*.c) $(wildcard libmrmpi/p2p/match/*.c) $(wildcard libmrmpi/p2p/choice/*.c) $(wildcard libmrmpi/p2p/*.c) $(wildcard libmrmpi/p2p/rndv/*.c) $(wildcard libmrmpi/p2p/request/*.c) $(wildcard libmrmpi/p2p/progress/*.c) $(wildcard libmrmpi/p2p/derived/*.c)

TESTPROGS += tests/libmrmpi/test_match tests/libmrmpi/test_config tests/libmrmpi/test_shm_ring tests/libmrmpi/test_shm_pool tests/libmrmpi/test_shm_answer tests/libmrmpi/test_pt2pt \
    tests/libmrmpi/test_lock tests/libmrmpi/test_credit tests/libmrmpi/test_batch tests/libmrmpi/test_exchange tests/libmrmpi/test_answers tests/libmrmpi/test_burst tests/libmrmpi/test_trial tests/libmrmpi/test_way tests/libmrmpi/test_claim \
    tests/libmrmpi/test_reserve tests/libmrmpi/test_shm_sleep tests/libmrmpi/test_shm_cores
UNIT_TESTS += tests/libmrmpi/test_match tests/libmrmpi/test_config tests/libmrmpi/test_shm_ring tests/libmrmpi/test_shm_pool tests/libmrmpi/test_shm_answer tests/libmrmpi/test_pt2pt \
    tests/libmrmpi/test_lock tests/libmrmpi/test_credit tests/libmrmpi/test_batch tests/libmrmpi/test_exchange tests/libmrmpi/test_answers tests/libmrmpi/test_burst tests/libmrmpi/test_trial tests/libmrmpi/test_way tests/libmrmpi/test_claim \
    tests/libmrmpi/test_reserve tests/libmrmpi/test_shm_sleep tests/libmrmpi/test_shm_cores
tests/libmrmpi/test_match_SRCS := tests/libmrmpi/test_match.c libmrmpi/p2p/match/match.c
tests/libmrmpi/test_match_PKGS := check
tests/libmrmpi/test_credit_SRCS := tests/libmrmpi/test_credit.c
tests/libmrmpi/test_credit_PKGS := check
tests/libmrmpi/test_batch_SRCS := tests/libmrmpi/test_batch.c libmrmpi/p2p/choice/batch.c
tests/libmrmpi/test_batch_PKGS := check
tests/libmrmpi/test_exchange_SRCS := tests/libmrmpi/test_exchange.c
tests/libmrmpi/test_exchange_PKGS := check
tests/libmrmpi/test_answers_SRCS := tests/libmrmpi/test_answers.c
tests/libmrmpi/test_answers_PKGS := check
tests/libmrmpi/test_burst_SRCS := tests/libmrmpi/test_burst.c libmrmpi/p2p/choice/burst.c libmrmpi/p2p/choice/trial.c
tests/libmrmpi/test_burst_PKGS := check
tests/libmrmpi/test_trial_SRCS := tests/libmrmpi/test_trial.c libmrmpi/p2p/choice/trial.c
tests/libmrmpi/test_trial_PKGS := check
tests/libmrmpi/test_way_SRCS := tests/libmrmpi/test_way.c libmrmpi/p2p/choice/way.c
tests/libmrmpi/test_way_PKGS := check
tests/libmrmpi/test_claim_SRCS := tests/libmrmpi/test_claim.c
tests/libmrmpi/test_claim_PKGS := check
tests/libmrmpi/test_claim_LDLIBS := -lpthread
tests/libmrmpi/test_config_SRCS := tests/libmrmpi/test_config.c libmrmpi/base/config.c libmrmpi/base/config_table.c libmrmpi/base/log.c
tests/libmrmpi/test_config_PKGS := check
tests/libmrmpi/test_config_LDLIBS := -lpthread
tests/libmrmpi/test_shm_ring_SRCS := tests/libmrmpi/test_shm_ring.c
tests/libmrmpi/test_shm_ring_PKGS := check
tests/libmrmpi/test_shm_ring_LDLIBS := -lpthread
tests/libmrmpi/test_shm_sleep_SRCS := tests/libmrmpi/test_shm_sleep.c libmrmpi/channel/shm_sleep.c libmrmpi/base/clock.c libmrmpi/base/lock.c
tests/libmrmpi/test_shm_sleep_PKGS := check
tests/libmrmpi/test_shm_sleep_LDLIBS := -lpthread
tests/libmrmpi/test_shm_cores_SRCS := tests/libmrmpi/test_shm_cores.c libmrmpi/channel/shm_cores.c
tests/libmrmpi/test_shm_cores_PKGS := check
tests/libmrmpi/test_shm_cores_LDLIBS := -lpthread
tests/libmrmpi/test_shm_answer_SRCS := tests/libmrmpi/test_shm_answer.c
tests/libmrmpi/test_shm_answer_PKGS := check
tests/libmrmpi/test_shm_pool_SRCS := tests/libmrmpi/test_shm_pool.c libmrmpi/channel/shm_copy.c libmrmpi/base/clock.c $(wildcard libmrmpi/base/copy*.c)
tests/libmrmpi/test_shm_pool_PKGS := check
tests/libmrmpi/test_shm_pool_LDLIBS := -lpthread
tests/libmrmpi/test_lock_SRCS := tests/libmrmpi/test_lock.c libmrmpi/base/lock.c
tests/libmrmpi/test_lock_PKGS := check
tests/libmrmpi/test_lock_LDLIBS := -lpthread
tests/libmrmpi/test_pt2pt_SRCS := tests/libmrmpi/test_pt2pt.c $(FAKE_WORLD_SRCS)
tests/libmrmpi/test_pt2pt_PKGS := check
tests/libmrmpi/test_pt2pt_LDLIBS := -lpthread
tests/libmrmpi/test_reserve_SRCS := tests/libmrmpi/test_reserve.c $(FAKE_WORLD_SRCS)
tests/libmrmpi/test_reserve_PKGS := check
tests/libmrmpi/test_reserve_LDLIBS := -lpthread

# rail, verbs, fabric: the pure parts, and the client of fabricd against a server of the test's own
TESTPROGS += $(addprefix tests/libmrmpi/,test_wire test_reorder test_vc test_far test_winlock test_sched test_policy test_rules test_quota test_epoch test_subs test_budget test_rely test_blocks test_repair test_pair test_place test_address test_memfile test_bucket test_trust test_ahead test_pace test_grant test_adapt test_regcache test_select test_device test_cq test_rx test_retire test_gid test_pkey test_connect test_fabric_client)
UNIT_TESTS += $(addprefix tests/libmrmpi/,test_wire test_reorder test_vc test_far test_winlock test_sched test_policy test_rules test_quota test_epoch test_subs test_budget test_rely test_blocks test_repair test_pair test_place test_address test_memfile test_bucket test_trust test_ahead test_pace test_grant test_adapt test_regcache test_select test_device test_cq test_rx test_retire test_gid test_pkey test_connect test_fabric_client)
tests/libmrmpi/test_wire_SRCS := tests/libmrmpi/test_wire.c
tests/libmrmpi/test_wire_PKGS := check
tests/libmrmpi/test_reorder_SRCS := tests/libmrmpi/test_reorder.c libmrmpi/channel/vc/reorder.c libmrmpi/base/lent.c
tests/libmrmpi/test_reorder_PKGS := check
tests/libmrmpi/test_vc_SRCS := tests/libmrmpi/test_vc.c libmrmpi/channel/vc/vc.c libmrmpi/channel/vc/reorder.c $(addprefix libmrmpi/base/,lent.c config.c config_table.c log.c stats.c)
tests/libmrmpi/test_vc_PKGS := check
tests/libmrmpi/test_vc_LDLIBS := -lpthread
tests/libmrmpi/test_sched_SRCS := tests/libmrmpi/test_sched.c libmrmpi/conn/route/sched.c libmrmpi/conn/route/policy.c libmrmpi/verbs/reliable/filter.c
tests/libmrmpi/test_policy_SRCS := tests/libmrmpi/test_policy.c $(addprefix libmrmpi/conn/route/,sched.c policy.c feedback.c)
tests/libmrmpi/test_policy_PKGS := check
tests/libmrmpi/test_sched_PKGS := check
tests/libmrmpi/test_rules_SRCS := tests/libmrmpi/test_rules.c libmrmpi/conn/route/rules.c libmrmpi/verbs/link/kinds.c
tests/libmrmpi/test_rules_PKGS := check
tests/libmrmpi/test_far_SRCS := tests/libmrmpi/test_far.c $(addprefix libmrmpi/rma/winlock/,part.c taker.c far.c) $(addprefix libmrmpi/base/,stats.c log.c config.c config_table.c)
tests/libmrmpi/test_far_PKGS := check
tests/libmrmpi/test_far_LDLIBS := -lpthread
tests/libmrmpi/test_winlock_SRCS := tests/libmrmpi/test_winlock.c $(addprefix libmrmpi/rma/winlock/,part.c taker.c)
tests/libmrmpi/test_winlock_PKGS := check
tests/libmrmpi/test_quota_SRCS := tests/libmrmpi/test_quota.c
tests/libmrmpi/test_quota_PKGS := check
RAIL_TEST_BASE := $(addprefix libmrmpi/base/,config.c config_table.c log.c stats.c)
tests/libmrmpi/test_epoch_SRCS := tests/libmrmpi/test_epoch.c libmrmpi/conn/epoch.c $(addprefix libmrmpi/conn/peer/,levels.c subs.c) \
    $(addprefix libmrmpi/conn/route/,pair.c policy.c sched.c) $(RAIL_TEST_BASE)
tests/libmrmpi/test_epoch_PKGS := check
tests/libmrmpi/test_epoch_LDLIBS := -lpthread
tests/libmrmpi/test_subs_SRCS := tests/libmrmpi/test_subs.c $(addprefix libmrmpi/conn/peer/,subs.c links.c levels.c) libmrmpi/conn/epoch.c \
    $(addprefix libmrmpi/conn/route/,pair.c policy.c sched.c) libmrmpi/verbs/reliable/window.c $(RAIL_TEST_BASE)
tests/libmrmpi/test_subs_PKGS := check
tests/libmrmpi/test_subs_LDLIBS := -lpthread
tests/libmrmpi/test_budget_SRCS := tests/libmrmpi/test_budget.c libmrmpi/conn/budget.c libmrmpi/conn/ration.c libmrmpi/verbs/link/kinds.c $(RAIL_TEST_BASE)
tests/libmrmpi/test_budget_PKGS := check
tests/libmrmpi/test_budget_LDLIBS := -lpthread
# peer: over links of the tests' own (fake_peer.h)
PARTITIONS := libmrmpi/conn/peer/partitions.c libmrmpi/verbs/pkey.c
PEER_TESTS := $(addprefix tests/libmrmpi/,test_recovery test_handshake test_keepalive test_probe test_guard test_silence \
    test_steer test_spread test_addresses test_where)
TESTPROGS += $(PEER_TESTS)
UNIT_TESTS += $(PEER_TESTS)
$(foreach t,$(PEER_TESTS),$(eval $(t)_PKGS := check)$(eval $(t)_LDLIBS := -lpthread))
tests/libmrmpi/test_recovery_SRCS := tests/libmrmpi/test_recovery.c libmrmpi/conn/recovery.c libmrmpi/conn/ways.c libmrmpi/conn/route/trust.c $(PARTITIONS) libmrmpi/verbs/reliable/window.c \
    libmrmpi/base/record.c $(RAIL_TEST_BASE)
tests/libmrmpi/test_handshake_SRCS := tests/libmrmpi/test_handshake.c libmrmpi/conn/route/trust.c $(PARTITIONS) $(addprefix libmrmpi/conn/,handshake.c connect.c ways.c) \
    libmrmpi/conn/cm/conn.c libmrmpi/conn/cm/message.c libmrmpi/verbs/reliable/window.c $(RAIL_TEST_BASE)
tests/libmrmpi/test_keepalive_SRCS := tests/libmrmpi/test_keepalive.c libmrmpi/conn/keepalive.c libmrmpi/conn/route/trust.c $(PARTITIONS) $(RAIL_TEST_BASE)
tests/libmrmpi/test_steer_SRCS := tests/libmrmpi/test_steer.c libmrmpi/conn/peer/steer.c libmrmpi/conn/route/rules.c \
    libmrmpi/verbs/link/kinds.c $(RAIL_TEST_BASE)
tests/libmrmpi/test_spread_SRCS := tests/libmrmpi/test_spread.c libmrmpi/conn/peer/spread.c libmrmpi/conn/route/policy.c \
    $(RAIL_TEST_BASE)
tests/libmrmpi/test_guard_SRCS := tests/libmrmpi/test_guard.c libmrmpi/conn/peer/guard.c $(RAIL_TEST_BASE)
tests/libmrmpi/test_silence_SRCS := tests/libmrmpi/test_silence.c libmrmpi/conn/silence.c libmrmpi/conn/ways.c libmrmpi/conn/route/trust.c $(PARTITIONS) $(RAIL_TEST_BASE)
tests/libmrmpi/test_probe_SRCS := tests/libmrmpi/test_probe.c libmrmpi/conn/peer/probe.c $(RAIL_TEST_BASE)
tests/libmrmpi/test_addresses_SRCS := tests/libmrmpi/test_addresses.c libmrmpi/conn/peer/addresses.c libmrmpi/conn/route/address.c libmrmpi/verbs/link/kinds.c \
    $(RAIL_TEST_BASE)
tests/libmrmpi/test_where_SRCS := tests/libmrmpi/test_where.c libmrmpi/conn/peer/where.c $(PARTITIONS) $(RAIL_TEST_BASE)
tests/libmrmpi/test_rely_SRCS := tests/libmrmpi/test_rely.c libmrmpi/net/rely.c libmrmpi/net/turn.c libmrmpi/conn/peer/lists.c libmrmpi/conn/route/address.c libmrmpi/conn/route/sched.c libmrmpi/conn/route/policy.c \
    $(addprefix libmrmpi/verbs/reliable/,window.c ack.c) libmrmpi/base/record.c $(RAIL_TEST_BASE)
tests/libmrmpi/test_rely_PKGS := check
tests/libmrmpi/test_rely_LDLIBS := -lpthread
tests/libmrmpi/test_address_SRCS := tests/libmrmpi/test_address.c libmrmpi/conn/route/address.c
tests/libmrmpi/test_address_PKGS := check
tests/libmrmpi/test_blocks_SRCS := tests/libmrmpi/test_blocks.c libmrmpi/verbs/reliable/blocks.c
tests/libmrmpi/test_blocks_PKGS := check
tests/libmrmpi/test_repair_SRCS := tests/libmrmpi/test_repair.c libmrmpi/verbs/reliable/repair.c
tests/libmrmpi/test_repair_PKGS := check
tests/libmrmpi/test_pair_SRCS := tests/libmrmpi/test_pair.c libmrmpi/conn/route/pair.c libmrmpi/conn/route/policy.c
tests/libmrmpi/test_pair_PKGS := check
tests/libmrmpi/test_place_SRCS := tests/libmrmpi/test_place.c libmrmpi/coll/place.c
tests/libmrmpi/test_place_PKGS := check
TESTPROGS += tests/libmrmpi/test_node_ring
UNIT_TESTS += tests/libmrmpi/test_node_ring
tests/libmrmpi/test_node_ring_SRCS := tests/libmrmpi/test_node_ring.c
tests/libmrmpi/test_node_ring_PKGS := check
tests/libmrmpi/test_node_ring_LDLIBS := -lpthread
tests/libmrmpi/test_memfile_SRCS := tests/libmrmpi/test_memfile.c libmrmpi/base/memfile.c
tests/libmrmpi/test_memfile_PKGS := check
tests/libmrmpi/test_bucket_SRCS := tests/libmrmpi/test_bucket.c
tests/libmrmpi/test_bucket_PKGS := check
tests/libmrmpi/test_trust_SRCS := tests/libmrmpi/test_trust.c libmrmpi/conn/route/trust.c
tests/libmrmpi/test_trust_PKGS := check
tests/libmrmpi/test_ahead_SRCS := tests/libmrmpi/test_ahead.c libmrmpi/conn/route/ahead.c
tests/libmrmpi/test_ahead_PKGS := check
tests/libmrmpi/test_pace_SRCS := tests/libmrmpi/test_pace.c libmrmpi/conn/route/pace.c
tests/libmrmpi/test_pace_PKGS := check
tests/libmrmpi/test_grant_SRCS := tests/libmrmpi/test_grant.c libmrmpi/net/grant.c libmrmpi/conn/route/ahead.c libmrmpi/conn/route/pace.c $(RAIL_TEST_BASE)
tests/libmrmpi/test_grant_PKGS := check
tests/libmrmpi/test_grant_LDLIBS := -lpthread
tests/libmrmpi/test_adapt_SRCS := tests/libmrmpi/test_adapt.c libmrmpi/conn/route/adapt.c libmrmpi/conn/route/sched.c libmrmpi/conn/route/policy.c
tests/libmrmpi/test_adapt_PKGS := check
tests/libmrmpi/test_regcache_SRCS := tests/libmrmpi/test_regcache.c libmrmpi/verbs/memory/regcache.c
tests/libmrmpi/test_regcache_PKGS := check
tests/libmrmpi/test_select_SRCS := tests/libmrmpi/test_select.c $(addprefix libmrmpi/verbs/,select.c contexts.c) $(RAIL_TEST_BASE)
tests/libmrmpi/test_select_PKGS := check libibverbs
tests/libmrmpi/test_select_LDLIBS := -lpthread
tests/libmrmpi/test_device_SRCS := tests/libmrmpi/test_device.c $(addprefix libmrmpi/verbs/,cq.c later.c device.c gid.c partition.c pkey.c port.c select.c) \
    $(wildcard libmrmpi/base/*.c)
tests/libmrmpi/test_device_PKGS := check libibverbs
tests/libmrmpi/test_device_LDLIBS := -lpthread
tests/libmrmpi/test_cq_SRCS := tests/libmrmpi/test_cq.c $(addprefix libmrmpi/verbs/,cq.c later.c) $(wildcard libmrmpi/base/*.c)
tests/libmrmpi/test_cq_PKGS := check libibverbs
tests/libmrmpi/test_cq_LDLIBS := -lpthread
tests/libmrmpi/test_rx_SRCS := tests/libmrmpi/test_rx.c $(addprefix libmrmpi/verbs/,cq.c later.c rx.c) $(wildcard libmrmpi/base/*.c)
tests/libmrmpi/test_rx_PKGS := check libibverbs
tests/libmrmpi/test_rx_LDLIBS := -lpthread
tests/libmrmpi/test_retire_SRCS := tests/libmrmpi/test_retire.c $(addprefix libmrmpi/verbs/,cq.c later.c post.c qp.c) $(wildcard libmrmpi/base/*.c)
tests/libmrmpi/test_retire_PKGS := check libibverbs
tests/libmrmpi/test_retire_LDLIBS := -lpthread
tests/libmrmpi/test_gid_SRCS := tests/libmrmpi/test_gid.c libmrmpi/verbs/gid.c
tests/libmrmpi/test_gid_PKGS := check
tests/libmrmpi/test_pkey_SRCS := tests/libmrmpi/test_pkey.c libmrmpi/verbs/pkey.c
tests/libmrmpi/test_pkey_PKGS := check
tests/libmrmpi/test_connect_SRCS := tests/libmrmpi/test_connect.c libmrmpi/conn/cm/conn.c libmrmpi/conn/cm/message.c
tests/libmrmpi/test_connect_PKGS := check
tests/libmrmpi/test_fabric_client_SRCS := tests/libmrmpi/test_fabric_client.c libmrmpi/conn/fabric/client.c
tests/libmrmpi/test_fabric_client_PKGS := check
tests/libmrmpi/test_fabric_client_LDLIBS := -lpthread

# reliable: pure; test_reliable joins two ends by a network that it makes up
RELIABLE_TESTS := $(addprefix tests/libmrmpi/,test_window test_rtt test_ack test_reliable)
TESTPROGS += $(RELIABLE_TESTS)
UNIT_TESTS += $(RELIABLE_TESTS)
$(foreach t,$(RELIABLE_TESTS),$(eval $(t)_PKGS := check))
tests/libmrmpi/test_window_SRCS := tests/libmrmpi/test_window.c libmrmpi/verbs/reliable/window.c
tests/libmrmpi/test_reliable_SRCS := tests/libmrmpi/test_reliable.c libmrmpi/verbs/reliable/window.c libmrmpi/verbs/reliable/ack.c \
    libmrmpi/channel/vc/reorder.c libmrmpi/base/lent.c
tests/libmrmpi/test_rtt_SRCS := tests/libmrmpi/test_rtt.c
tests/libmrmpi/test_ack_SRCS := tests/libmrmpi/test_ack.c libmrmpi/verbs/reliable/ack.c

# link: the pure parts, and what the library has of each kind
LINK_TESTS := $(addprefix tests/libmrmpi/,test_assembly test_kinds test_slots test_packet test_link_ops)
TESTPROGS += $(LINK_TESTS)
UNIT_TESTS += $(LINK_TESTS)
$(foreach t,$(LINK_TESTS),$(eval $(t)_PKGS := check))
tests/libmrmpi/test_assembly_SRCS := tests/libmrmpi/test_assembly.c libmrmpi/verbs/link/assembly.c
tests/libmrmpi/test_packet_SRCS := tests/libmrmpi/test_packet.c libmrmpi/verbs/link/packet.c $(RAIL_TEST_BASE)
tests/libmrmpi/test_packet_LDLIBS := -lpthread
tests/libmrmpi/test_slots_SRCS := tests/libmrmpi/test_slots.c
tests/libmrmpi/test_kinds_SRCS := tests/libmrmpi/test_kinds.c libmrmpi/verbs/link/kinds.c
tests/libmrmpi/test_link_ops_SRCS := tests/libmrmpi/test_link_ops.c
tests/libmrmpi/test_link_ops_DEPS := libmrmpi.so

# The calls that unmap memory, led to ours: with a sanitizer the allocator is another one, and there is nothing to test.
ifeq ($(SAN),)
TESTPROGS += tests/libmrmpi/test_memory
UNIT_TESTS += tests/libmrmpi/test_memory
tests/libmrmpi/test_memory_SRCS := tests/libmrmpi/test_memory.c $(addprefix libmrmpi/verbs/memory/,calls.c patch.c)
CFLAGS.tests/libmrmpi/test_memory.c := -fno-builtin
tests/libmrmpi/test_memory_PKGS := check
tests/libmrmpi/test_memory_LDLIBS := -lpthread
endif

# Large messages over links of the test's own
TESTPROGS += tests/libmrmpi/test_bulk
UNIT_TESTS += tests/libmrmpi/test_bulk
tests/libmrmpi/test_bulk_SRCS := tests/libmrmpi/test_bulk.c $(addprefix libmrmpi/net/bulk/,bulk.c advertise.c) $(addprefix libmrmpi/net/stripe/,keys.c put.c renew.c renewed.c wlist.c stripe.c moves.c) libmrmpi/verbs/reliable/filter.c $(addprefix libmrmpi/conn/route/,ahead.c pace.c sched.c policy.c adapt.c feedback.c) \
    $(addprefix libmrmpi/verbs/memory/,regcache.c use.c) $(addprefix libmrmpi/base/,config.c config_table.c log.c record.c stats.c)
tests/libmrmpi/test_bulk_PKGS := check
tests/libmrmpi/test_bulk_LDLIBS := -lpthread

# The same over links, pools and a peer of fake_bulk.c, protocol by protocol
BULK_TESTS := $(addprefix tests/libmrmpi/,test_track test_moves test_zcopy_in test_zcopy_out)
TESTPROGS += $(BULK_TESTS)
UNIT_TESTS += $(BULK_TESTS)
$(foreach t,$(BULK_TESTS),$(eval $(t)_SRCS := $(t).c tests/libmrmpi/fake_bulk.c libmrmpi/net/bulk/bulk.c \
    $(addprefix libmrmpi/net/stripe/,keys.c put.c renew.c renewed.c wlist.c stripe.c moves.c track.c) $(addprefix libmrmpi/net/zcopy/,zcopy_plan.c zcopy_wait.c zcopy_settle.c zcopy_in.c zcopy_serve.c zcopy_out.c) \
    $(addprefix libmrmpi/verbs/reliable/,filter.c blocks.c repair.c) \
    $(addprefix libmrmpi/conn/route/,ahead.c pace.c sched.c policy.c adapt.c feedback.c) \
    $(addprefix libmrmpi/base/,config.c config_table.c log.c record.c stats.c)) $(eval $(t)_PKGS := check) $(eval $(t)_LDLIBS := -lpthread))

TESTPROGS += tests/libmrmpi/test_renew
UNIT_TESTS += tests/libmrmpi/test_renew
tests/libmrmpi/test_renew_SRCS := tests/libmrmpi/test_renew.c $(addprefix libmrmpi/net/stripe/,renew.c renewed.c) \
    $(addprefix libmrmpi/base/,config.c config_table.c log.c record.c stats.c)
tests/libmrmpi/test_renew_PKGS := check
tests/libmrmpi/test_renew_LDLIBS := -lpthread

# Short writes to windows, and words that adapters change, over the same
TESTPROGS += tests/libmrmpi/test_writer tests/libmrmpi/test_word
UNIT_TESTS += tests/libmrmpi/test_writer tests/libmrmpi/test_word
tests/libmrmpi/test_word_SRCS := $(subst test_moves.c,test_word.c,$(tests/libmrmpi/test_moves_SRCS)) libmrmpi/net/bulk/word.c
tests/libmrmpi/test_word_PKGS := check
tests/libmrmpi/test_word_LDLIBS := -lpthread
tests/libmrmpi/test_writer_SRCS := $(subst test_moves.c,test_writer.c,$(tests/libmrmpi/test_moves_SRCS)) libmrmpi/net/bulk/writer.c
tests/libmrmpi/test_writer_PKGS := check
tests/libmrmpi/test_writer_LDLIBS := -lpthread

# The end of a job, with channels, a launcher and a pt2pt/ of the test's own
TESTPROGS += tests/libmrmpi/test_linger
UNIT_TESTS += tests/libmrmpi/test_linger
tests/libmrmpi/test_linger_SRCS := tests/libmrmpi/test_linger.c libmrmpi/api/init/init.c libmrmpi/core/error.c libmrmpi/channel/vc/vc.c libmrmpi/channel/channel.c \
    libmrmpi/channel/vc/reorder.c $(wildcard libmrmpi/base/*.c)
tests/libmrmpi/test_linger_PKGS := check
tests/libmrmpi/test_linger_LDLIBS := -lpthread

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
endef
$(foreach p,pair rma calls,$(eval $(call counted_program,$(p))))
CFLAGS.tests/libmrmpi/instructions.c := -Ilibmrmpi/include
endif

# core, coll, api: objects and handles, without a network
CORE_TEST_SRCS := $(addprefix libmrmpi/core/,type.c type_make.c type_array.c pack.c move.c layout.c op.c $(foreach l,base avx2 avx512,op_$(l).c move_$(l).c) group.c topo.c dims.c error.c)
CORE_TESTS := $(addprefix tests/libmrmpi/,test_type test_move test_op test_group test_handle test_pieces test_tiling test_disk)
TESTPROGS += $(CORE_TESTS)
UNIT_TESTS += $(CORE_TESTS)
tests/libmrmpi/test_type_SRCS := tests/libmrmpi/test_type.c $(CORE_TEST_SRCS)
tests/libmrmpi/test_move_SRCS := tests/libmrmpi/test_move.c $(addprefix libmrmpi/core/,move.c $(foreach l,base avx2 avx512,move_$(l).c))
tests/libmrmpi/test_pieces_SRCS := tests/libmrmpi/test_pieces.c libmrmpi/core/pieces/pieces.c $(CORE_TEST_SRCS)
tests/libmrmpi/test_tiling_SRCS := tests/libmrmpi/test_tiling.c libmrmpi/io/tiling.c $(CORE_TEST_SRCS)
tests/libmrmpi/test_disk_SRCS := tests/libmrmpi/test_disk.c libmrmpi/io/disk.c $(CORE_TEST_SRCS)
tests/libmrmpi/test_op_SRCS := tests/libmrmpi/test_op.c $(CORE_TEST_SRCS)
tests/libmrmpi/test_group_SRCS := tests/libmrmpi/test_group.c $(CORE_TEST_SRCS)
tests/libmrmpi/test_handle_SRCS := tests/libmrmpi/test_handle.c libmrmpi/api/handle.c libmrmpi/api/abi_mpich.c \
    $(addprefix libmrmpi/core/,info.c errhandler.c) $(CORE_TEST_SRCS)
CFLAGS.tests/libmrmpi/test_handle.c := -Ilibmrmpi/include
$(foreach t,$(CORE_TESTS),$(eval $(t)_PKGS := check))

TESTPROGS += tests/libmrmpi/forbid
tests/libmrmpi/forbid_SRCS := tests/libmrmpi/forbid.c
SCRIPT_TESTS += tests/libmrmpi/shm.sh tests/libmrmpi/container.sh tests/libmrmpi/waiting.sh tests/libmrmpi/rails.sh tests/libmrmpi/many_rails.sh tests/libmrmpi/pairs.sh tests/libmrmpi/unequal.sh tests/libmrmpi/adaptive.sh tests/libmrmpi/loads.sh tests/libmrmpi/policies.sh tests/libmrmpi/pool.sh tests/libmrmpi/toy.sh tests/libmrmpi/instructions.sh
LONG_TESTS += tests/libmrmpi/fuzz.sh tests/libmrmpi/pairs_all.sh tests/libmrmpi/loads_all.sh
