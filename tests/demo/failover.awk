# SPDX-License-Identifier: BSD-3-Clause
# Tells what cables that are pulled meant for the traffic, and judges it.
#
#   awk -v pulls=N -v pause_ms=MS -v recover_ms=MS -v again_ms=MS -f failover.awk RATES
#
# RATES is what rates.awk has made of a trace. Wanted are:
# - N cables were pulled and put back while there was traffic
# - while a cable is out its rail carries nothing, and the others go on. After a time without any the first way that is
#   found may lead from a rail whose cable is out at the other end: until its own is open, a tenth of all at most
# - no pause above pause_ms while a rail is left, none above recover_ms after a time without any
# - a rail carries data again_ms after its cable is back at the latest; recover_ms, if all had been out
# What is not as wanted is printed on lines "wrong: ...", and the exit status is 1.
# Two lines at the end are for programs: "pause left MS", the longest pause while a rail was left, and "pause none MS",
# the longest one that had a time without any rail in it.
BEGIN {
  FS = "\t"
  begin = ""
  n = rails = agains = 0
}

function wrong(why) {
  print "wrong: " why
  failed = 1
}

function note(at, text) {
  notes[at] = notes[at] (at in notes ? "\n" : "") text
}

$1 == "rail" { rail[rails++] = $2; next }
$1 == "cable" {
  split($4, word, " ")
  change[$2, changes[$2]++] = ($3 == "pulled" ? 1 : -1) " " word[2]
  label[$2] = label[$2] (label[$2] == "" ? "" : ", ") $4 ": cable " ($3 == "pulled" ? "pulled" : "put back")
  count[$3]++
  next
}
$1 == "between" {
  begin = begin == "" ? $2 : begin
  from[n] = $2
  to[n] = $3
  pause[n] = $4
  for (r = 0; r < rails; r++)
    rate[n, r] = $(5 + r)
  n++
  next
}
$1 == "still" { still_from = $2; still_to = $3; next }
$1 == "again" { again[agains++] = $2 "\t" $3 "\t" $4; next }

# A stretch between two changes: out, how many rails have no cable; recovering, there has been no way until it began
function judge(i, out, recovering, r, limit, where, all, most) {
  where = sprintf("%.1f to %.1f ms: ", from[i], to[i])
  if (out == rails)
    return
  limit = recovering ? recover_ms : pause_ms
  if (pause[i] > limit)
    wrong(where "no data for " pause[i] " ms, more than " limit)
  if (!recovering && pause[i] > pause_left)
    pause_left = pause[i]
  for (r = 0; r < rails; r++)
    all += rate[i, r]
  most = recovering ? all / 10 : 1
  for (r = 0; r < rails; r++) {
    if (missing[rail[r]] && rate[i, r] > most)
      wrong(where rail[r] " carries " rate[i, r] " MB/s though its cable is out")
    if (!missing[rail[r]] && out && !recovering && rate[i, r] < 10)
      wrong(where rail[r] " does not carry on: " rate[i, r] " MB/s")
  }
}

function show(i, r) {
  printf "   %9.1f  %-52s", from[i], from[i] in label ? label[from[i]] : "the program sends"
  for (r = 0; r < rails; r++)
    printf " %7.1f", rate[i, r]
  printf "  %9.3f\n", pause[i]
}

END {
  if (begin == "") {
    wrong("there is no traffic")
    exit 1
  }
  printf "   %9s  %-52s", "time, ms", "what happens; MB/s of each rail from then on:"
  for (r = 0; r < rails; r++)
    printf " %7s", rail[r]
  print "  pause, ms"
  for (i = 0; i < n; i++) {
    for (k = 0; k < changes[from[i]]; k++) {
      split(change[from[i], k], word, " ")
      out += !missing[word[2]] * (word[1] > 0)
      missing[word[2]] += word[1]
      out -= !missing[word[2]] * (word[1] < 0)
    }
    show(i)
    judge(i, out, recovering)
    sum = 0
    for (r = 0; r < rails; r++)
      sum += rate[i, r]
    recovering = out == rails || (recovering && sum < 10)
    if (out == rails)
      none_from = none_from == "" ? from[i] : none_from
    for (k = 0; k < agains; k++) {
      split(again[k], word, "\t")
      if (word[1] <= from[i] || word[1] > to[i])
        continue
      printf "   %9.1f  %s: carries data again, %.1f ms after its cable is back\n", word[1], word[3], word[2]
      limit = none_from == "" || word[1] - word[2] < none_from ? again_ms : recover_ms
      if (word[2] > limit)
        wrong(word[3] " carries data again only " word[2] " ms after its cable is back")
    }
  }
  if (count["pulled"] + 0 != pulls || count["back"] + 0 != pulls)
    wrong(count["pulled"] + 0 " cables were pulled, " count["back"] + 0 " put back while the program ran, not " pulls)
  if (agains + 0 != pulls)
    wrong(agains + 0 " of " pulls " cables carry data again after they were put back")
  printf "pause left %.3f\n", pause_left
  printf "pause none %.3f\n", none_from == "" ? 0 : still_to - still_from
  exit failed
}
