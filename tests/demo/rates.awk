# SPDX-License-Identifier: BSD-3-Clause
# What the packets of a `simfab trace` say about the rails of a fabric with one switch.
#
#   awk -v bin=MS -f rates.awk TRACE
#
# A rail is a device name (mlx5_0); a packet belongs to the rail of the adapter that sent it. It counts when it has left
# the switch for a host, with its headers, both directions together. A rail's bytes are those that its ports have received
# (rcv_data): not what the last cable lost, but what came from another rail.
# Times are virtual, in ms; rates are in 10^6 bytes/s. Output, tab-separated, rails in the order of their names:
#
#   rail NAME BYTES
#   cable TIME pulled|back ADAPTER    as the adapter's port saw it
#   rate TIME RATE...                 for each bin from the first packet to the last; TIME is its beginning
#   between FROM TO STILL RATE...     for each time between two changes of cables; STILL: the longest part without data
#   still FROM TO                     the longest time without data
#   again TIME AFTER ADAPTER          the adapter carries data again, so long after its cable was put back
#
# Data are packets with DATA_MIN bytes or more behind the headers: others are acknowledgements, answers, agreements.
BEGIN {
  FS = OFS = "\t"
  DATA_MIN = 256
  stretches = 0
  if (bin !~ /^[0-9.]+$/ || bin + 0 <= 0)
    fail("-v bin=MS: the width of a bin is wanted, a number above 0, not \"" bin "\"")
}

function fail(why) {
  if (!failed)
    print "rates.awk: " why | "cat >&2"
  failed = 1
  exit 1
}

# The number, or with a quote the string, that follows a key: value("ts"), text("name")
function value(key) {
  if (!match($0, "\"" key "\":[0-9.]+"))
    fail(FILENAME ":" FNR ": no number \"" key "\" in this event")
  return substr($0, RSTART + length(key) + 3, RLENGTH - length(key) - 3) + 0
}

function text(key, rest) {
  rest = substr($0, index($0, "\"args\":"))
  if (!match(rest, "\"" key "\":\"[^\"]*\""))
    fail(FILENAME ":" FNR ": no text \"" key "\" in this event")
  return substr(rest, RSTART + length(key) + 4, RLENGTH - length(key) - 5)
}

function name_node(pid, name, words) {
  node[pid] = name
  if (split(name, words, " ") > 1)
    device[pid] = words[2]
}

# No data until t.
function idle(t, from) {
  if (last_data == "")
    return
  if (t - last_data > still_to - still_from) {
    still_from = last_data
    still_to = t
  }
  from = last_data > stretch ? last_data : stretch
  if (t - from > still)
    still = t - from
}

# A stretch between two changes of cables ends, and another begins.
function end_stretch(t) {
  idle(t)
  stretch_from[stretches] = stretch
  stretch_to[stretches] = t
  stretch_still[stretches++] = still
  stretch = t
  still = 0
}

/"name":"process_name"/ { name_node(value("pid"), text("name")); next }
/"name":"process_labels"/ { is_switch[value("pid")] = /simulated switch/; next }

/"cat":"packet"/ {
  pid = value("pid")
  if (!is_switch[pid]) {
    if (!(pid in device))
      fail(FILENAME ":" FNR ": a packet leaves a node without a name, or whose name has no device: \"" node[pid] "\"")
    sender[value("slid")] = device[pid]
    next
  }
  slid = value("slid")
  if (!(slid in sender))
    fail(FILENAME ":" FNR ": no adapter has sent a packet with the LID " slid " yet")
  received[value("dlid")] += value("bytes")
  arrives(sender[slid], (value("ts") + value("dur")) / 1000, value("bytes"), value("payload"))
  next
}

function arrives(rail, t, bytes, payload, b) { # b: a local variable
  if (first == "") {
    first = last = int(t / bin)
    stretch = t
  }
  b = int(t / bin)
  if (b > last)
    last = b
  binned[b, rail] += bytes
  summed[stretches, rail] += bytes
  end = t > end ? t : end
  if (payload < DATA_MIN)
    return
  idle(t)
  last_data = t
  if (rail in waits) {
    again[agains++] = sprintf("%.3f%s%.3f%s%s", t, OFS, t - waits[rail], OFS, waits_for[rail])
    delete waits[rail]
  }
}

/"cat":"drop"/ && /"name":"dropped: the link went down"/ {
  pid = value("pid")
  if (!is_switch[pid])
    received[value("dlid")] -= value("bytes") # it had left the switch
  next
}

/"cat":"state"/ && /"name":"(Down|Active)"/ {
  pid = value("pid")
  if (is_switch[pid])
    next
  t = value("ts") / 1000
  end = t > end ? t : end
  cable[cables++] = sprintf("%.3f%s%s%s%s", t, OFS, /"Down"/ ? "pulled" : "back", OFS, node[pid])
  if (/"Active"/) {
    waits[device[pid]] = t
    waits_for[device[pid]] = node[pid]
  }
  if (first != "")
    end_stretch(t)
}

function sum_received(lid) {
  for (lid in received) {
    if (!(lid in sender))
      fail(FILENAME ": packets go to LID " lid ", from which none came")
    total[sender[lid]] += received[lid]
  }
}

function sorted_rails(r, i) {
  for (r in total) {
    for (i = rails++; i > 0 && rail[i - 1] > r; i--)
      rail[i] = rail[i - 1]
    rail[i] = r
  }
}

function rates(kind, i, ms, line, r) {
  for (r = 0; r < rails; r++)
    line = line OFS sprintf("%.3f", (kind == "bin" ? binned[i, rail[r]] : summed[i, rail[r]]) / ms / 1000)
  return line
}

END {
  if (failed)
    exit 1
  if (first == "")
    fail(FILENAME ": no packet leaves a switch; is this a trace of simfab?")
  if (end > stretch)
    end_stretch(end)
  sum_received()
  sorted_rails()
  for (r = 0; r < rails; r++)
    printf "rail\t%s\t%.0f\n", rail[r], total[rail[r]]
  for (i = 0; i < cables; i++)
    print "cable", cable[i]
  for (i = first; i <= last; i++)
    print "rate", sprintf("%.3f", i * bin) rates("bin", i, bin)
  for (i = 0; i < stretches; i++)
    if (stretch_to[i] > stretch_from[i])
      print "between", sprintf("%.3f\t%.3f\t%.3f", stretch_from[i], stretch_to[i], stretch_still[i]) \
        rates("stretch", i, stretch_to[i] - stretch_from[i])
  print "still", sprintf("%.3f\t%.3f", still_from, still_to)
  for (i = 0; i < agains; i++)
    print "again", again[i]
}
