from speechmeter.launch.parcels import pack, unpack


def test_what_is_packed_is_unpacked_as_it_was(tmp_path):
    there, here = tmp_path / "there", tmp_path / "here"
    (there / "case/deep").mkdir(parents=True)
    (there / "case/deep/text.tsv").write_text("a\tb")
    (there / "log.txt").write_bytes(b"\0\1")
    packed, left_out = pack(there)
    assert (unpack(packed, here), left_out) == ([], [])
    assert (here / "case/deep/text.tsv").read_text() == "a\tb"
    assert (here / "log.txt").read_bytes() == b"\0\1"


def test_what_is_too_much_is_named_and_the_small_files_travel(tmp_path):
    for name, size in (("big", 3 * 2**20), ("small", 10), ("middle", 600_000), ("other", 600_000)):
        (tmp_path / name).write_bytes(b"x" * size)
    packed, left_out = pack(tmp_path, most_bytes=2**20)
    assert sorted(packed) == ["middle", "small"]
    assert [line.partition(" ")[0] for line in left_out] == ["other", "big"]
    assert "3 MiB" in left_out[1]


def test_links_do_not_travel(tmp_path):
    (tmp_path / "secret").write_text("x")
    folder = tmp_path / "folder"
    folder.mkdir()
    (folder / "link").symlink_to(tmp_path / "secret")
    assert pack(folder) == ({}, [])


def test_names_and_links_that_lead_out_are_refused(tmp_path):
    folder, outside = tmp_path / "artifacts", tmp_path / "outside"
    folder.mkdir()
    outside.mkdir()
    (folder / "link").symlink_to(outside)
    names = ["../x", "/tmp/speechmeter-x", "a/../../x", "link/x", "", ".", "nul\0"]
    refused = unpack({**dict.fromkeys(names, b"evil"), "fine/x": b"good"}, folder)
    assert len(refused) == len(names)
    assert [path for path in tmp_path.rglob("*") if path.is_file()] == [folder / "fine/x"]
