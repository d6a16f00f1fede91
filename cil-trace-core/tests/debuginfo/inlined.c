/*
 * What debug information of a kernel module has, in small: see ../debuginfo.rs. Compiled for
 * x86-64 by GCC 12, here, without the machine's paths:
 *
 *   gcc -O2 -gdwarf-4     -ffile-prefix-map=$PWD=. -c inlined.c -o dwarf4.o
 *   gcc -O2 -gdwarf-5 -gz -ffile-prefix-map=$PWD=. -c inlined.c -o dwarf5-compressed.o
 */

struct grant_head {
	int		waiters;
	unsigned int	lock;
};

struct log {
	struct log	*next;
	union {
		long	cycle;
		struct {
			int	block;
			int	offset;
		};
	};
	unsigned int	covered : 3;
	const volatile struct grant_head	head;
};

enum flags { NEED_FLUSH = 1, NEED_FUA = 17 };

typedef void (*btf_trace_written)(void *data, struct log *log, int bytes, enum flags flags);

struct log *current_log;
btf_trace_written written;
enum flags wanted;

/* Its code is marked by an instruction that nothing else has: nopl 0x1234(%rax). */
void insert(struct log *log, int bytes)
{
	__asm__ volatile(".byte 0x0f, 0x1f, 0x80, 0x34, 0x12, 0x00, 0x00");
	log->block += bytes;
	written(0, log, bytes, wanted);
}

void commit(struct log *log, int bytes)
{
	if (bytes > 4096)
		return;
	log->offset = 7;
	insert(log, bytes);
	log->cycle++;
}

__attribute__((section(".text.other"))) int push(int count)
{
	for (int i = 0; i < count; i++) {
		if (current_log->covered)
			insert(current_log, i);
		current_log = current_log->next;
	}
	return count;
}

/* Never inlined, and nothing is inlined into it. */
__attribute__((noinline)) void force(struct log *log)
{
	log->block = 0;
}
