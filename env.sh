export PATH=/work/main/.venv/bin:$PATH
export PYTHONPATH=/tmp/w/lead
export TORCH_DEVICE_BACKEND_AUTOLOAD=0
cd /tmp/w/lead
