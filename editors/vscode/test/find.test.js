"use strict";
const test = require("node:test");
const assert = require("node:assert");
const fs = require("fs");
const path = require("path");
const os = require("os");
const { find, candidates, isFile, serverArguments, whyNot, INSTALL } = require("../find");

test("the setting comes first, then the project's own environment, then the path", () => {
  const order = candidates(["/p"], "/my/troth", { PATH: "/usr/bin" }, "linux");
  assert.deepStrictEqual(order, ["/my/troth", "/p/.venv/bin/troth", "/p/venv/bin/troth", "/usr/bin/troth"]);
});

test("what does not exist is passed over", () => {
  assert.strictEqual(find(["/p"], "", { PATH: "/usr/bin" }, (one) => one === "/usr/bin/troth"), "/usr/bin/troth");
  assert.strictEqual(find(["/p"], "", { PATH: "" }, () => false), null);
});

test("a folder of that name is no command", () => {
  assert.strictEqual(isFile(__filename), true);
  assert.strictEqual(isFile(__dirname), false);
  assert.strictEqual(isFile(path.join(__dirname, "nothing")), false);
});

const windows = process.platform === "win32" && "there are no scripts of a shell";
test("a troth that cannot serve says why", { skip: windows }, async () => {
  const folder = fs.mkdtempSync(path.join(os.tmpdir(), "troth-"));
  try {
    const script = (name, text, mode = 0o755) => {
      const file = path.join(folder, name);
      fs.writeFileSync(file, `#!/bin/sh\n${text}\n`, { mode });
      return file;
    };
    assert.strictEqual(await whyNot(script("old", "printf 'It needs pygls.\\nGet it.\\n' >&2; exit 2")), "It needs pygls. Get it.");
    assert.strictEqual(await whyNot(script("locked", "exit 0", 0o644)), "It may not be run.");
    assert.strictEqual(await whyNot(script("mute", "exit 1")), INSTALL);
    assert.strictEqual(await whyNot(path.join(folder, "gone")), INSTALL);
  } finally {
    fs.rmSync(folder, { recursive: true });
  }
});

test("a log is asked for only if it is set", () => {
  assert.deepStrictEqual(serverArguments(""), ["lsp"]);
  assert.deepStrictEqual(serverArguments("/tmp/l"), ["lsp", "--log", "/tmp/l"]);
});

test("the manifest names files that are there, and every setting of the server", () => {
  const folder = path.join(__dirname, "..");
  const manifest = JSON.parse(fs.readFileSync(path.join(folder, "package.json"), "utf8"));
  assert.ok(fs.existsSync(path.join(folder, manifest.main)));
  assert.ok(fs.existsSync(path.join(folder, manifest.icon)));
  for (const name of ["LICENSE", "README.md"]) assert.ok(fs.existsSync(path.join(folder, name)), name);
  assert.match(manifest.version, /^\d+\.\d+\.\d+$/);
  const trust = manifest.capabilities.untrustedWorkspaces;
  assert.strictEqual(trust.supported, "limited");
  const settings = Object.keys(manifest.contributes.configuration.properties);
  for (const name of ["select", "ignore", "confidence", "python", "diagnostics", "lens", "inlay"]) {
    assert.ok(settings.includes(`troth.${name}`), name);
  }
  for (const name of trust.restrictedConfigurations) assert.ok(settings.includes(name), name);
});
