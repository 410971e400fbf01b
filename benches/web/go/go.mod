module weir-bench-web

go 1.19
