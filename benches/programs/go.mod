module weir.example/programs

go 1.25
