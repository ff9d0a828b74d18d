// SPDX-License-Identifier: BSD-3-Clause
// Unpacks the browser that npm brought, so that it runs where nothing but libc is installed:
//   node chromium.mjs FOLDER     -> FOLDER/chromium.sh
import { chmod, mkdir, rm, writeFile } from "node:fs/promises";
import { dirname, join, resolve } from "node:path";
import { fileURLToPath } from "node:url";
import { inflate } from "@sparticuz/chromium";

const FONTS = `<?xml version="1.0"?>
<!DOCTYPE fontconfig SYSTEM "urn:fontconfig:fonts.dtd">
<fontconfig>
  <dir prefix="relative">fonts/fonts</dir>
  <cachedir prefix="xdg">fontconfig</cachedir>
</fontconfig>
`;
// Its own libraries and fonts, even where there are others: a page is as wide everywhere.
const START = `#!/bin/sh
here=$(dirname "$0")
export LD_LIBRARY_PATH="$here/al2023/lib" FONTCONFIG_FILE="$here/fonts.conf"
exec "$here/chromium" "$@"
`;

if (process.platform !== "linux" || process.arch !== "x64") {
  console.error("npm's Chromium is for Linux on x86-64: make ... CHROMIUM=/path/to/chromium takes yours");
  process.exit(1);
}
const folder = resolve(process.argv[2]);
await rm(folder, { recursive: true, force: true });
await mkdir(folder, { recursive: true });
process.env.TMPDIR = folder; // Where inflate() writes; it believes whatever lies there.
const packed = join(dirname(fileURLToPath(import.meta.resolve("@sparticuz/chromium"))), "..", "bin");
for (const name of ["chromium.br", "al2023.tar.br", "fonts.tar.br"]) await inflate(join(packed, name));
await writeFile(join(folder, "fonts.conf"), FONTS);
await writeFile(join(folder, "chromium.sh"), START);
await chmod(join(folder, "chromium.sh"), 0o755);
