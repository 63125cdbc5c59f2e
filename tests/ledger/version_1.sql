-- A ledger of version 1, as its first release wrote it. This file never changes.
PRAGMA journal_mode = WAL;
CREATE TABLE environment (
    digest BLOB PRIMARY KEY NOT NULL,
    document TEXT NOT NULL
) WITHOUT ROWID;
CREATE TABLE run (
    number INTEGER PRIMARY KEY,
    id TEXT NOT NULL UNIQUE,
    study TEXT NOT NULL,
    names TEXT NOT NULL,
    commands_digest BLOB NOT NULL,
    plan TEXT NOT NULL,
    started_at NOT NULL CHECK (typeof(started_at) = 'real')
);
CREATE TABLE sitting (
    run INTEGER NOT NULL REFERENCES run (number),
    number INTEGER NOT NULL,
    environment BLOB NOT NULL REFERENCES environment (digest),
    started_at NOT NULL CHECK (typeof(started_at) = 'real'),
    PRIMARY KEY (run, number)
) WITHOUT ROWID;
CREATE TABLE sitting_end (
    run INTEGER NOT NULL,
    sitting INTEGER NOT NULL,
    ended_at NOT NULL CHECK (typeof(ended_at) = 'real'),
    stopped_because TEXT NOT NULL,
    PRIMARY KEY (run, sitting),
    FOREIGN KEY (run, sitting) REFERENCES sitting (run, number)
) WITHOUT ROWID;
CREATE TABLE draw (
    number INTEGER PRIMARY KEY,
    run INTEGER NOT NULL REFERENCES run (number),
    phase TEXT NOT NULL CHECK (phase IN ('warmup', 'measured')),
    block INTEGER NOT NULL,
    conditions TEXT NOT NULL,
    padding_bytes INTEGER NOT NULL,
    UNIQUE (run, phase, block)
);
CREATE TABLE trial (
    number INTEGER PRIMARY KEY,
    run INTEGER NOT NULL,
    phase TEXT NOT NULL,
    block INTEGER NOT NULL,
    position INTEGER NOT NULL,
    condition INTEGER NOT NULL,
    started_at NOT NULL CHECK (typeof(started_at) = 'real'),
    wall_s CHECK (typeof(wall_s) IN ('real', 'null')),
    user_s CHECK (typeof(user_s) IN ('real', 'null')),
    sys_s CHECK (typeof(sys_s) IN ('real', 'null')),
    max_rss_bytes INTEGER,
    minor_faults INTEGER,
    major_faults INTEGER,
    voluntary_switches INTEGER,
    involuntary_switches INTEGER,
    block_reads INTEGER,
    block_writes INTEGER,
    output_bytes INTEGER,
    unknown TEXT,
    exit INTEGER,
    failure TEXT,
    failure_kind TEXT,
    washout INTEGER NOT NULL,
    error_tail TEXT,
    covariates TEXT,
    FOREIGN KEY (run, phase, block) REFERENCES draw (run, phase, block)
);
CREATE TABLE sample (
    trial INTEGER NOT NULL REFERENCES trial (number),
    place INTEGER NOT NULL,
    metric TEXT NOT NULL,
    value CHECK (typeof(value) IN ('real', 'null')),
    iteration INTEGER,
    unit TEXT,
    better TEXT NOT NULL CHECK (better IN ('lower', 'higher')),
    PRIMARY KEY (trial, place)
) WITHOUT ROWID;
CREATE TABLE notice (
    number INTEGER PRIMARY KEY,
    run INTEGER NOT NULL REFERENCES run (number),
    code TEXT NOT NULL,
    words TEXT NOT NULL,
    mend TEXT NOT NULL
);
CREATE INDEX run_by_commands ON run (commands_digest);
CREATE INDEX trial_by_run ON trial (run);
CREATE INDEX notice_by_run ON notice (run);
PRAGMA application_id = 1162956883;
PRAGMA user_version = 1;

INSERT INTO environment VALUES (x'00112233445566778899aabbccddeeff', '{"host":"old","cpus":2}');
INSERT INTO run VALUES (
    1, '20261120-113005-4f2a', 'compare', '["true","false"]',
    x'000102030405060708090a0b0c0d0e0f',
    '{"study":"compare","conditions":[{"name":"true","command":["true"],"levels":{},"environment":{},"hooks":{"setup":null,"prepare":null,"conclude":null,"cleanup":null}},{"name":"false","command":["false"],"levels":{},"environment":{},"hooks":{"setup":null,"prepare":null,"conclude":null,"cleanup":null}}],"measure":{"working_folder":"/somewhere","input":null,"output":{"kind":"discard","path":null},"timeout_s":600.0,"warmup":1,"washout":false,"ignore_failure":false,"vary_environment_size":true},"stopping":{"blocks":200,"min_blocks":5,"min_blocks_explicit":false,"budget_s":60.0,"precision":null,"look":true},"judgement":{"alpha":0.05,"min_effect":1.0,"primary_metric":"wall_s"},"seed":7}',
    1795174205.25
);
INSERT INTO sitting VALUES (1, 1, x'00112233445566778899aabbccddeeff', 1795174205.25);
INSERT INTO sitting_end VALUES (1, 1, 1795174210.5, 'blocks');
INSERT INTO draw VALUES (1, 1, 'measured', 1, '[1,0]', 128);
INSERT INTO trial VALUES (
    1, 1, 'measured', 1, 0, 1, 1795174206.0, 0.125, 0.0625, NULL, 4096, 1, 0, 2, 3,
    NULL, NULL, NULL, '{"sys_s":"not reported"}', 1, 'exit status 1', 'failed', 0, 'no luck',
    '{"load_1":0.25,"temperature":null}'
);
INSERT INTO sample VALUES (1, 0, 'latency_s', 0.001953125, 7, 's', 'lower');
INSERT INTO notice VALUES (1, 1, 'few_blocks', 'one block', 'run more');
