package digest

import (
	"encoding/hex"
	"testing"
)

func widths() []int {
	var list []int
	for _, width := range []int{portable, avx2, avx512} {
		if width <= widest {
			list = append(list, width)
		}
	}
	return list
}

func pattern(length int) []byte {
	data := make([]byte, length)
	for i := range data {
		data[i] = byte(i % 251)
	}
	return data
}

// As the authors' own implementation has them; bytes 0, 1, ... 250, 0, 1, ...
func TestKnownDigests(t *testing.T) {
	for length, expected := range map[int]string{
		0:       "af1349b9f5f9a1a6a0404dea36dcc9499bcb25c9adc112b7cc9a93cae41f3262",
		1:       "2d3adedff11b61f14c886e35afa036736dcd87a74d27b5c1510225d0f592e213",
		63:      "e9bc37a594daad83be9470df7f7b3798297c3d834ce80ba85d6e207627b7db7b",
		64:      "4eed7141ea4a5cd4b788606bd23f46e212af9cacebacdc7d1f4c6dc7f2511b98",
		65:      "de1e5fa0be70df6d2be8fffd0e99ceaa8eb6e8c93a63f2d8d1c30ecb6b263dee",
		1023:    "10108970eeda3eb932baac1428c7a2163b0e924c9a9e25b35bba72b28f70bd11",
		1024:    "42214739f095a406f3fc83deb889744ac00df831c10daa55189b5d121c855af7",
		1025:    "d00278ae47eb27b34faecf67b4fe263f82d5412916c1ffd97c8cb7fb814b8444",
		2048:    "e776b6028c7cd22a4d0ba182a8bf62205d2ef576467e838ed6f2529b85fba24a",
		2049:    "5f4d72f40d7a5f82b15ca2b2e44b1de3c2ef86c426c95c1af0b6879522563030",
		3072:    "b98cb0ff3623be03326b373de6b9095218513e64f1ee2edd2525c7ad1e5cffd2",
		4096:    "015094013f57a5277b59d8475c0501042c0b642e531b0a1c8f58d2163229e969",
		5120:    "9cadc15fed8b5d854562b26a9536d9707cadeda9b143978f319ab34230535833",
		16384:   "f875d6646de28985646f34ee13be9a576fd515f76b5b0a26bb324735041ddde4",
		16385:   "1dabe216be2578830263b049de1639f39f05a4da616b9b78c7a5e4e41662fd1f",
		31744:   "62b6960e1a44bcc1eb1a611a8d6235b6b4b78f32e7abc4fb4c6cdcce94895c47",
		102400:  "bc3e3d41a1146b069abffad3c0d44860cf664390afce4d9661f7902e7943e085",
		1000003: "cd5a3272e01b1a2f47bb4565d8d202db0f95704d32550a2da61a0fd363d4c90d",
	} {
		for _, width := range widths() {
			if found := sum(pattern(length), width); hex.EncodeToString(found[:]) != expected {
				t.Errorf("%d bytes, %d lanes: %x", length, width, found)
			}
		}
	}
	if found := Sum([]byte("abc")); hex.EncodeToString(found[:]) != "6437b3ac38465133ffb63b75273a8db548c558465d79db03fd359c6cd5bd9d85" {
		t.Errorf("abc: %x", found)
	}
}

func BenchmarkSum(b *testing.B) {
	data := pattern(1 << 20)
	b.SetBytes(1 << 20)
	for b.Loop() {
		Sum(data)
	}
}
