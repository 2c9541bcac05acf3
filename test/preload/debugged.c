// SPDX-License-Identifier: Apache-2.0
//
// The program that gdb.sh debugs: a list that grows and is freed again, a thread, and a bad pointer at the
// end.
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct node {
  struct node* next;
  int number;
  char text[32];
};

static struct node* push(struct node* head, int number) {
  struct node* made = malloc(sizeof *made);
  made->next = head;
  made->number = number;
  snprintf(made->text, sizeof made->text, "node %d", number);
  return made;
}

static int length(const struct node* head) { return head == NULL ? 0 : 1 + length(head->next); }

static void* in_thread(void* head) {
  char* copy = strdup("from a thread");
  const int found = length(head);
  free(copy);
  return (void*)(long)found;
}

int main(void) {
  struct node* head = NULL;
  for (int i = 0; i < 20; ++i) head = push(head, i);
  pthread_t thread;
  void* found;
  pthread_create(&thread, NULL, in_thread, head);
  pthread_join(thread, &found);
  printf("length %ld\n", (long)found);
  while (head != NULL) {
    struct node* next = head->next;
    free(head);
    head = next;
  }
  fflush(stdout);
  *(volatile int*)head = 1;
}
