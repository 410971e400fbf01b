// Go's own server of files, on one processor: main PORT FOLDER.
package main

import (
	"log"
	"net/http"
	"os"
	"runtime"
)

func main() {
	runtime.GOMAXPROCS(1)
	log.Fatal(http.ListenAndServe("127.0.0.1:"+os.Args[1], http.FileServer(http.Dir(os.Args[2]))))
}
