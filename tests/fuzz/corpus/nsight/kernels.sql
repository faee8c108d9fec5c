CREATE TABLE StringIds(id INTEGER PRIMARY KEY,value TEXT);
INSERT INTO StringIds VALUES(1,'gemm'),(2,'attn'),(3,'cudaLaunchKernel_v7000'),(4,'cudaStreamWaitEvent_v3020'),(5,'cudaEventRecord'),(6,'cudaDeviceSynchronize_v3020'),(7,'dispatch');
CREATE TABLE CUPTI_ACTIVITY_KIND_KERNEL(start,end,deviceId,streamId,correlationId,globalPid,demangledName);
INSERT INTO CUPTI_ACTIVITY_KIND_KERNEL VALUES(10,20,0,7,1,16777216,1),(30,50,0,27,2,16777216,7),(60,90,0,7,3,16777216,1);
