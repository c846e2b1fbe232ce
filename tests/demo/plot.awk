# SPDX-License-Identifier: BSD-3-Clause
# Draws the bandwidth of rails over time, stacked, as an SVG.
#
#   awk -f plot.awk TABLE >SVG
#
# TABLE has tab-separated lines. "title TEXT" and "note TEXT" stand above the picture. "panel TEXT" begins a panel,
# whose lines are those of rates.awk: rail, cable and rate are drawn, the others are not. The bins of a panel are
# equally wide; one that is missing has no traffic. Anything else is an error, which names the line; exit status 1.
BEGIN {
  FS = "\t"
  WIDTH = 1200; LEFT = 100; RIGHT = 30; HEIGHT = 220; LANE = 20; HEAD = 40; ABOVE = 60; BELOW = 50
  split("#0072B2 #E69F00 #009E73 #CC79A7", COLOR, " ") # of rails; told apart by colour-blind people, too
  OUT = "#D55E00"
  DARK = "#222"; GREY = "#555"; LIGHT = "#ddd"
  panels = notes = 0
}

function fail(why) {
  if (!failed)
    print "plot.awk: " why | "cat >&2"
  failed = 1
  exit 1
}

function here(why) { fail(FILENAME ":" FNR ": " why) }

function number(text) {
  if (text !~ /^[0-9]+(\.[0-9]*)?$/)
    here("a number is wanted, not \"" text "\"")
  return text + 0
}

function fields(n) {
  if (NF != n)
    here("\"" $1 "\" wants " n - 1 " fields after it, not " NF - 1)
}

function in_panel() {
  if (!panels)
    here("\"" $1 "\" before the first \"panel\"")
}

/^$/ || /^#/ { next }
$1 == "title" { fields(2); title = $2; next }
$1 == "note" { fields(2); note[notes++] = $2; next }
$1 == "panel" { fields(2); label[panels++] = $2; rails = bins = 0; next }
$1 == "rail" {
  fields(3)
  in_panel()
  if (rails == 4)
    here("more than 4 rails: there are no more colours")
  rail[panels, rails++] = $2
  bytes[panels, rails - 1] = number($3)
  num_rails[panels] = rails
  next
}
$1 == "cable" {
  fields(4)
  in_panel()
  if ($3 != "pulled" && $3 != "back")
    here("\"pulled\" or \"back\" is wanted, not \"" $3 "\"")
  i = changes[panels]++
  change_at[panels, i] = number($2)
  change_to[panels, i] = $3
  change_of[panels, i] = $4
  if (!((panels, $4) in lane)) {
    lane[panels, $4] = lanes[panels]++
    lane_name[panels, lane[panels, $4]] = $4
  }
  next
}
$1 == "rate" {
  in_panel()
  if (!rails)
    here("\"rate\" before the panel's rails")
  fields(2 + rails)
  at = number($2)
  if (bins && at <= bin_at[panels, bins - 1])
    here("time " at " is not after the line before")
  if (bins && (!(panels in width) || at - bin_at[panels, bins - 1] < width[panels]))
    width[panels] = at - bin_at[panels, bins - 1]
  bin_at[panels, bins] = at
  sum = 0
  for (i = 0; i < rails; i++)
    sum += rate[panels, bins, i] = number($(3 + i))
  if (sum > most[panels])
    most[panels] = sum
  num_bins[panels] = ++bins
  next
}
$1 == "between" || $1 == "still" || $1 == "again" { next }
{ here("unknown line \"" $1 "\"") }

function escaped(s) {
  gsub(/&/, "\\&amp;", s)
  gsub(/</, "\\&lt;", s)
  gsub(/>/, "\\&gt;", s)
  gsub(/"/, "\\&quot;", s)
  gsub(/[\001-\037\177]/, " ", s)
  return s
}

function text(x, y, s, more) {
  printf "<text x=\"%.1f\" y=\"%.1f\"%s>%s</text>\n", x, y, more == "" ? "" : " " more, escaped(s)
}

function rect(x, y, w, h, fill) {
  printf "<rect x=\"%.1f\" y=\"%.1f\" width=\"%.1f\" height=\"%.1f\" fill=\"%s\"/>\n", x, y, w, h, fill
}

function line(x1, y1, x2, y2, stroke, more) {
  printf "<line x1=\"%.1f\" y1=\"%.1f\" x2=\"%.1f\" y2=\"%.1f\" stroke=\"%s\"", x1, y1, x2, y2, stroke
  print (more == "" ? "" : " " more) "/>"
}

# 1, 2 or 5 times a power of ten: about so many steps up to the most
function step_for(most, steps, s) {
  s = 1
  while (s * steps < most) s *= 10
  while (s * steps >= most * 10) s /= 10
  if (s / 5 * steps >= most) return s / 5
  if (s / 2 * steps >= most) return s / 2
  return s
}

function x_of(t) { return LEFT + (t - t0) / (t1 - t0) * (WIDTH - LEFT - RIGHT) }
function y_of(v) { return top + HEIGHT * (1 - v / vmax) }

# The outline of the first n rails' sum from left to right, in steps
function outline(p, n, i, k, v, path) {
  path = sprintf("%.1f,%.1f", x_of(bin_at[p, 0]), y_of(0))
  for (i = 0; i < num_bins[p]; i++) {
    if (i && bin_at[p, i] > bin_at[p, i - 1] + width[p] * 1.5)
      path = path sprintf(" V%.1f H%.1f", y_of(0), x_of(bin_at[p, i]))
    v = 0
    for (k = 0; k < n; k++)
      v += rate[p, i, k]
    path = path sprintf(" V%.1f H%.1f", y_of(v), x_of(bin_at[p, i] + width[p]))
  }
  return "M" path sprintf(" V%.1f", y_of(0))
}

function axes(p, bottom, s, v, t) {
  s = step_for(most[p], 5)
  vmax = (int(most[p] / s) + 1) * s
  for (v = 0; v <= vmax + s / 100; v += s) {
    line(LEFT, y_of(v), WIDTH - RIGHT, y_of(v), LIGHT)
    text(LEFT - 8, y_of(v) + 4, sprintf("%g", v), "text-anchor=\"end\" fill=\"" GREY "\"")
  }
  s = step_for(t1 - t0, 14)
  for (t = int(t0 / s) * s; t <= t1 + s / 100; t += s) {
    if (t < t0)
      continue
    line(x_of(t), top, x_of(t), bottom + 5, LIGHT)
    text(x_of(t), bottom + 19, sprintf("%g", t), "text-anchor=\"middle\" fill=\"" GREY "\"")
  }
  text((LEFT + WIDTH - RIGHT) / 2, bottom + 38, "virtual time, ms (simulated)",
       "text-anchor=\"middle\" fill=\"" DARK "\"")
  printf "<text transform=\"translate(32,%.1f) rotate(-90)\" text-anchor=\"middle\"", top + HEIGHT / 2
  print " fill=\"" DARK "\">bandwidth, MB/s</text>"
}

function dashes(kind) { return "stroke-width=\"1.5\" stroke-dasharray=\"" (kind == "pulled" ? "6,3" : "2,3") "\"" }

# A lane for each cable that changes: a bar while it is out, and its times on the side that has room
function cables(p, i, j, y, from, to, words, style, last_end) {
  for (i = 0; i < lanes[p]; i++) {
    y = top + HEIGHT + 8 + i * LANE
    text(LEFT - 8, y + 13, lane_name[p, i], "text-anchor=\"end\" fill=\"" DARK "\"")
    from = ""
    last_end = LEFT
    for (j = 0; j <= changes[p]; j++) {
      if (j < changes[p] && change_of[p, j] != lane_name[p, i])
        continue
      if (j < changes[p] && change_to[p, j] == "pulled") {
        from = from == "" ? change_at[p, j] : from
        continue
      }
      if (from == "")
        continue
      to = j < changes[p] ? change_at[p, j] : t1
      rect(x_of(from), y + 3, x_of(to) - x_of(from), 12, OUT)
      words = sprintf(j < changes[p] ? "out %.1f to %.1f ms" : "out from %.1f ms", from, to)
      style = "fill=\"" DARK "\" stroke=\"#fff\" stroke-width=\"4\" paint-order=\"stroke\""
      if (free_until(p, lane_name[p, i], to) - x_of(to) > 7 * length(words))
        text(x_of(to) + 6, y + 13, words, style)
      else if (x_of(from) - last_end > 7 * length(words))
        text(x_of(from) - 6, y + 13, words, style " text-anchor=\"end\"")
      last_end = x_of(to)
      from = ""
    }
  }
  for (j = 0; j < changes[p]; j++)
    line(x_of(change_at[p, j]), top, x_of(change_at[p, j]), top + HEIGHT, change_to[p, j] == "pulled" ? OUT : DARK,
         dashes(change_to[p, j]))
}

# Where the next bar of the lane begins
function free_until(p, name, t, j) {
  for (j = 0; j < changes[p]; j++)
    if (change_of[p, j] == name && change_to[p, j] == "pulled" && change_at[p, j] > t)
      return x_of(change_at[p, j])
  return WIDTH - RIGHT
}

function legend(p, y, x, k, words) {
  x = LEFT
  for (k = 0; k < num_rails[p]; k++) {
    words = sprintf("%s: %.1f MB", rail[p, k], bytes[p, k] / 1e6)
    rect(x, y - 10, 12, 12, COLOR[k + 1])
    text(x + 18, y, words, "fill=\"" DARK "\"")
    x += 40 + 7.2 * length(words)
  }
  line(x, y - 4, x + 22, y - 4, "#000", "stroke-width=\"1.5\"")
  text(x + 28, y, "sum", "fill=\"" DARK "\"")
  x += 84
  if (!changes[p])
    return
  line(x, y - 4, x + 22, y - 4, OUT, dashes("pulled"))
  text(x + 28, y, "cable pulled", "fill=\"" DARK "\"")
  line(x + 130, y - 4, x + 152, y - 4, DARK, dashes("back"))
  text(x + 158, y, "cable put back", "fill=\"" DARK "\"")
  rect(x + 272, y - 10, 22, 12, OUT)
  text(x + 300, y, "cable is out", "fill=\"" DARK "\"")
}

function panel(p, k, bottom) {
  bottom = top + HEIGHT + (lanes[p] ? 8 + lanes[p] * LANE : 0)
  t0 = bin_at[p, 0]
  t1 = bin_at[p, num_bins[p] - 1] + width[p]
  text(LEFT, top - 34, label[p - 1], "font-size=\"15\" font-weight=\"bold\" fill=\"" DARK "\"")
  legend(p, top - 12)
  axes(p, bottom)
  for (k = num_rails[p]; k > 0; k--)
    printf "<path d=\"%s Z\" fill=\"%s\"/>\n", outline(p, k), COLOR[k]
  printf "<path d=\"%s\" fill=\"none\" stroke=\"#000\" stroke-width=\"1.5\"/>\n", outline(p, num_rails[p])
  cables(p)
  line(LEFT, top, LEFT, bottom, DARK)
  line(LEFT, y_of(0), WIDTH - RIGHT, y_of(0), DARK)
  return bottom
}

function height(h, p) {
  h = HEAD + 20 * notes
  for (p = 1; p <= panels; p++)
    h += ABOVE + HEIGHT + (lanes[p] ? 8 + lanes[p] * LANE : 0) + BELOW
  return h
}

END {
  if (failed)
    exit 1
  if (!panels)
    fail("no panel in the table")
  for (p = 1; p <= panels; p++) {
    if (!num_bins[p])
      fail("panel \"" label[p - 1] "\" has no rates")
    if (!(p in width))
      width[p] = 1
    if (most[p] <= 0)
      most[p] = 1
  }
  printf "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 %d %d\"", WIDTH, height()
  printf " width=\"%d\" height=\"%d\" role=\"img\"", WIDTH, height()
  print " font-family=\"Helvetica, Arial, DejaVu Sans, sans-serif\" font-size=\"12\">"
  printf "<title>%s</title>\n", escaped(title)
  printf "<rect width=\"100%%\" height=\"100%%\" fill=\"#fff\"/>\n"
  text(24, 32, title, "font-size=\"19\" font-weight=\"bold\" fill=\"" DARK "\"")
  for (i = 0; i < notes; i++)
    text(24, 54 + 18 * i, note[i], "font-size=\"13\" fill=\"" GREY "\"")
  y = HEAD + 20 * notes
  for (p = 1; p <= panels; p++) {
    top = y + ABOVE
    y = panel(p) + BELOW
  }
  print "</svg>"
}
