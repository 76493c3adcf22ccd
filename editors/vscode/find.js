// Find the troth that a project uses: the setting, then its own environment, then the path.
"use strict";
const { execFile } = require("child_process");
const fs = require("fs");
const path = require("path");

const INSTALL = "Install it where your project's tools are: pip install 'troth[lsp]'";

function candidates(folders, setting, env, platform = process.platform) {
  const windows = platform === "win32";
  const inside = windows ? ["Scripts", "troth.exe"] : ["bin", "troth"];
  const found = setting ? [setting] : [];
  for (const folder of folders) {
    for (const name of [".venv", "venv"]) found.push(path.join(folder, name, ...inside));
  }
  if (env.VIRTUAL_ENV) found.push(path.join(env.VIRTUAL_ENV, ...inside));
  for (const folder of (env.PATH || "").split(path.delimiter)) {
    if (folder) found.push(path.join(folder, inside[1]));
  }
  return found;
}

function isFile(name) {
  return fs.statSync(name, { throwIfNoEntry: false })?.isFile() === true;
}

function find(folders, setting, env = process.env, exists = isFile) {
  return candidates(folders, setting, env).find((one) => exists(one)) || null;
}

function serverArguments(log) {
  return log ? ["lsp", "--log", log] : ["lsp"];
}

// What a troth says that cannot serve, such as one that was installed without `troth[lsp]`.
function whyNot(command) {
  return new Promise((resolve) => {
    const child = execFile(command, ["lsp"], { timeout: 20000 }, (problem, _out, complaint) => {
      const said = complaint.trim().replace(/\s*\n\s*/g, " ");
      resolve(said || (problem && problem.code === "EACCES" && "It may not be run.") || INSTALL);
    });
    child.stdin?.end();
  });
}

module.exports = { find, isFile, whyNot, candidates, serverArguments, INSTALL };
