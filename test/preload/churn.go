// SPDX-License-Identifier: Apache-2.0
//
// Work for go whose output is the same every time; built and run by go.sh. Blocks of C's malloc are made, moved, handed
// from thread to thread and freed by many goroutines, beside a heap that go collects.
package main

/*
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

static uint64_t sum(const unsigned char* p, size_t n) {
  uint64_t s = n;
  for (size_t i = 0; i < n; ++i) s = s * 31 + p[i];
  return s;
}
*/
import "C"

import (
	"fmt"
	"os/exec"
	"runtime"
	"sort"
	"strings"
	"sync"
	"unsafe"
)

type block struct {
	at   unsafe.Pointer
	size C.size_t
}

type numbers uint64

func (state *numbers) next(n uint64) uint64 {
	*state = *state*6364136223846793005 + 1442695040888963407
	return uint64(*state>>33) % n
}

// Makes blocks and hands them over; the receiver, mostly another thread, frees them.
func produce(seed uint64, out chan<- block, done *sync.WaitGroup) {
	defer done.Done()
	state := numbers(seed)
	for i := 0; i < 4000; i++ {
		size := C.size_t(1 + state.next(2000))
		if i%100 == 0 {
			size *= 100
		}
		at := C.malloc(size)
		C.memset(at, C.int(i&255), size)
		if i%7 == 0 {
			at = C.realloc(at, size*2)
			C.memset(unsafe.Add(at, size), C.int(i&127), size)
			size *= 2
		}
		out <- block{at, size}
	}
}

func consume(in <-chan block, total *uint64, done *sync.WaitGroup) {
	defer done.Done()
	for one := range in {
		*total += uint64(C.sum((*C.uchar)(one.at), one.size))
		C.free(one.at)
	}
}

func main() {
	blocks := make(chan block, 500)
	var producers, consumers sync.WaitGroup
	totals := make([]uint64, 6)
	for i := range totals {
		producers.Add(1)
		consumers.Add(1)
		go produce(uint64(i), blocks, &producers)
		go consume(blocks, &totals[i], &consumers)
	}
	producers.Wait()
	close(blocks)
	consumers.Wait()
	total := uint64(0)
	for _, one := range totals {
		total += one
	}
	fmt.Println("blocks", total)

	texts := map[string]int{}
	for i := 0; i < 50000; i++ {
		text := C.CString(strings.Repeat("g", i%200))
		texts[C.GoString(text)]++
		C.free(unsafe.Pointer(text))
	}
	keys := make([]string, 0, len(texts))
	for key := range texts {
		keys = append(keys, key)
	}
	sort.Strings(keys)
	fmt.Println("texts", len(keys), texts[keys[7]])

	// Threads that end: a goroutine that is locked to its thread takes it along.
	var threads sync.WaitGroup
	for i := 0; i < 200; i++ {
		threads.Add(1)
		go func(i int) {
			defer threads.Done()
			runtime.LockOSThread()
			at := C.malloc(C.size_t(1000 + i))
			C.free(at)
		}(i)
	}
	threads.Wait()
	runtime.GC()
	said, err := exec.Command("echo", "a child").Output()
	fmt.Println(string(said), err)
}
