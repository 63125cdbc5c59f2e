module example.com/rand

go 1.24
