module modelyard.local/tests/cluster/tools/helm-controller

go 1.26.0

// Its CRD alone: no release of a chart is installed in the tests.
require github.com/fluxcd/helm-controller v1.6.3
