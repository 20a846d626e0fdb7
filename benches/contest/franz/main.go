// A consume→produce loop of franz-go: batches as its clients like them, acknowledgements counted, nothing tracked.
//
// Its words are those of the other loops: source, target, topics, records, codec, linger in milliseconds.
package main

import (
	"context"
	"fmt"
	"os"
	"strconv"
	"strings"
	"sync/atomic"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"
)

type job struct {
	source, target string
	topics         []string
	records        int64
	codec          kgo.CompressionCodec
	linger         time.Duration
}

func main() {
	if err := run(os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, "franz:", err)
		os.Exit(1)
	}
}

func run(words []string) error {
	work, err := read(words)
	if err != nil {
		return err
	}
	consumer, err := kgo.NewClient(
		kgo.SeedBrokers(work.source),
		kgo.ConsumerGroup(fmt.Sprintf("franz-%d", os.Getpid())),
		kgo.ConsumeTopics(work.topics...),
		kgo.ConsumeResetOffset(kgo.NewOffset().AtStart()),
		kgo.FetchIsolationLevel(kgo.ReadCommitted()),
		kgo.DisableAutoCommit(),
	)
	if err != nil {
		return err
	}
	producer, err := kgo.NewClient(
		kgo.SeedBrokers(work.target),
		kgo.RecordPartitioner(kgo.ManualPartitioner()),
		kgo.ProducerBatchCompression(work.codec),
		kgo.ProducerLinger(work.linger),
		kgo.ProducerBatchMaxBytes(1_000_000),
		kgo.MaxBufferedRecords(200_000),
	)
	if err != nil {
		return err
	}
	return copyRecords(consumer, producer, work.records)
}

func copyRecords(consumer, producer *kgo.Client, wanted int64) error {
	ctx := context.Background()
	var failed atomic.Pointer[error]
	acknowledged := func(_ *kgo.Record, err error) {
		if err != nil {
			failed.CompareAndSwap(nil, &err)
		}
	}
	for seen := int64(0); seen < wanted; {
		fetches := consumer.PollFetches(ctx)
		if err := fetches.Err(); err != nil {
			return err
		}
		fetches.EachRecord(func(r *kgo.Record) {
			seen++
			producer.Produce(ctx, &kgo.Record{
				Topic: r.Topic, Partition: r.Partition, Timestamp: r.Timestamp,
				Key: r.Key, Value: r.Value, Headers: r.Headers,
			}, acknowledged)
		})
		if err := failed.Load(); err != nil {
			return *err
		}
	}
	if err := producer.Flush(ctx); err != nil {
		return err
	}
	if err := failed.Load(); err != nil {
		return *err
	}
	return nil
}

func read(words []string) (job, error) {
	if len(words) != 6 {
		return job{}, fmt.Errorf("six words, not %q", words)
	}
	codecs := map[string]kgo.CompressionCodec{
		"none": kgo.NoCompression(), "lz4": kgo.Lz4Compression(), "zstd": kgo.ZstdCompression(),
	}
	codec, known := codecs[words[4]]
	if !known {
		return job{}, fmt.Errorf("codec %q is not known", words[4])
	}
	records, err := strconv.ParseInt(words[3], 10, 64)
	if err != nil {
		return job{}, err
	}
	linger, err := strconv.Atoi(words[5])
	if err != nil {
		return job{}, err
	}
	return job{
		source: words[0], target: words[1], topics: strings.Split(words[2], ","),
		records: records, codec: codec, linger: time.Duration(linger) * time.Millisecond,
	}, nil
}
