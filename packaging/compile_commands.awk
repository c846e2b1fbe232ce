# From the commands that make would run to the list of clang's tools: the lines that compile one source.
BEGIN { print "[" }
/ -c -o [^ ]+\.o [^ ]+\.c$/ {
  command = $0
  gsub(/\\/, "\\\\", command)
  gsub(/"/, "\\\"", command)
  printf "%s{\"directory\": \"%s\", \"file\": \"%s\", \"command\": \"%s\"}", (n++ ? ",\n" : ""), dir, $NF, command
}
END { print "\n]" }
