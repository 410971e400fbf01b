module rows

go 1.21
