module tandem.dev/bench/load

go 1.22
