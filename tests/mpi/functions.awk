# Of the header and the manual's table of functions: one line FUNCTION(name, supported, "arguments") each, for C.
#   awk -f functions.awk mrmpi-functions.7 mpi.h
NR == FNR {
    if ($2 == "yes" || $2 == "unsupported")
        yes[$1] = $2 == "yes"
    next
}
/^MRMPIX?_FN\(/ { line = "" }
/^MRMPIX?_FN\(/, /\)\)$/ {
    sub(/^ +/, " ")
    line = line $0
    if (line ~ /\)\)$/ && match(line, /^MRMPIX?_FN\([A-Za-z_]+, /)) {
        prefix = line ~ /^MRMPIX/ ? "MPIX_" : "MPI_"
        line = substr(line, RLENGTH + 1)
        name = prefix substr(line, 1, index(line, ",") - 1)
        args = substr(line, index(line, "(") + 1)
        print "FUNCTION(" name ", " yes[name] ", \"" substr(args, 1, length(args) - 2) "\")"
    }
}
