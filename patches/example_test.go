package patches_test

import (
	"fmt"
	"log"
	"strings"

	"mpsforge/patches"
)

// The series that come with the program are loaded and checked without any checkout.
func Example() {
	files := patches.Embedded()
	series, err := patches.Load(files, patches.DefaultBaseline)
	if err != nil {
		log.Fatal(err)
	}
	first := series.Patches[0]
	fmt.Println(series.Baseline.Tag, first.Name, "by", first.Header.AuthorName)

	linted, err := patches.Lint(files, series.Baseline.Name, nil)
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println("every hunk exact by digest:", linted.Verified == linted.Hunks)
	fmt.Println("errors:", len(linted.Of(patches.SeverityError)))
	// Output:
	// v2.9.1 stream-discipline by mpsforge
	// every hunk exact by digest: true
	// errors: 0
}

// A file's change is applied strictly: what is not there exactly is a conflict, with line, expected and found.
func ExampleFile_Apply() {
	patch, err := patches.Parse("greeting", []byte(`From 0000000000000000000000000000000000000000 Mon Sep 17 00:00:00 2001
From: Ada <ada@example.invalid>
Date: Fri, 2 Jan 2026 03:04:05 +0000
Subject: Greet the world

diff --git a/hello b/hello
index ce013625030ba8dba906f756967f9e9ca394464a..cc628ccd10742baea8241c5924df992b5c019f71 100644
--- a/hello
+++ b/hello
@@ -1 +1 @@
-hello
+world
`))
	if err != nil {
		log.Fatal(err)
	}
	changed, err := patch.Files[0].Apply([]byte("hello\n"))
	fmt.Printf("%q %v\n", changed, err)
	_, err = patch.Files[0].Apply([]byte("goodbye\n"))
	fmt.Println(strings.ReplaceAll(err.Error(), "; ", ";\n"))
	// Output:
	// "world\n" <nil>
	// greeting: hello: hunk 1 (line 10 of the patch) does not apply: line 1 should be "hello", found "goodbye";
	// restore the file to the baseline, or port the patch
}
